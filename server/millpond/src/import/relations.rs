//! Articles that are near each other because they share topics.

use std::collections::{BTreeMap, HashMap};

use super::record::{Article, Kind, Relation};

/// Gives each article its `limit` nearest: most topics shared, rare topics counting more, then the newest.
pub(super) fn nearest(articles: &mut [Article], limit: usize) {
    let mut holders: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, article) in articles.iter().enumerate() {
        for topic in &article.topics {
            holders.entry(topic.clone()).or_default().push(index);
        }
    }
    let all: Vec<Vec<Relation>> = (0..articles.len())
        .map(|index| near(articles, &holders, index, limit))
        .collect();
    for (article, related) in articles.iter_mut().zip(all) {
        article.related.extend(related);
    }
}

fn near(
    articles: &[Article],
    holders: &HashMap<String, Vec<usize>>,
    index: usize,
    limit: usize,
) -> Vec<Relation> {
    // A topic on everything relates nothing, and looking through it for each article would be quadratic.
    const TOO_COMMON: usize = 500;
    let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
    for topic in &articles[index].topics {
        let sharing = holders
            .get(topic)
            .filter(|sharing| sharing.len() <= TOO_COMMON)
            .into_iter()
            .flatten();
        let weight = 1.0 / (holders.get(topic).map_or(1, Vec::len) as f64);
        for &other in sharing.filter(|&&other| other != index) {
            *scores.entry(other).or_default() += weight;
        }
    }
    let mut order: Vec<(usize, f64)> = scores.into_iter().collect();
    order.sort_by(|a, b| {
        let newer = articles[b.0].published_at.cmp(&articles[a.0].published_at);
        b.1.total_cmp(&a.1).then(newer)
    });
    let nearest = order.into_iter().take(limit);
    nearest
        .map(|(other, _)| Relation {
            slug: articles[other].slug.clone(),
            kind: Kind::Near,
        })
        .collect()
}
