//! "Did you mean …?"

/// The candidate that is most like `word`, if one is like it at all.
pub fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let scored = candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate));
    scored
        .filter(|(score, _)| *score > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}
