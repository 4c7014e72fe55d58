//! Buckets of the times that requests take: ten for each power of ten, from a microsecond to 100 s.
//!
//! The edges are round numbers, so that those of other people's histograms are among them: all
//! boundaries that OpenTelemetry gives `http.server.request.duration` are.

/// Edges for each power of ten, in hundredths.
const STEPS: [u64; 10] = [100, 125, 150, 200, 250, 300, 400, 500, 600, 750];
/// Powers of ten, from a microsecond to ten seconds.
const DECADES: usize = 8;
/// Number of edges: 100 s is the last.
const EDGE_COUNT: usize = STEPS.len() * DECADES + 1;

/// Number of buckets: one up to each edge, and one above the last.
pub(crate) const BUCKETS: usize = EDGE_COUNT + 1;

/// The upper edges of the buckets in nanoseconds, each part of its bucket. Longer times are in a
/// bucket of their own, which is the last.
pub const LATENCY_EDGES: [u64; EDGE_COUNT] = edges();

const fn edges() -> [u64; EDGE_COUNT] {
    let mut edges = [0; EDGE_COUNT];
    let (mut at, mut unit) = (0, 10);
    while at < EDGE_COUNT {
        edges[at] = STEPS[at % STEPS.len()] * unit;
        at += 1;
        if at.is_multiple_of(STEPS.len()) {
            unit *= 10;
        }
    }
    edges
}

/// Eighth of an octave: narrower than any bucket, so at most one edge lies in it.
#[derive(Clone, Copy)]
struct Eighth {
    /// The edge in it, or the next one.
    edge: u64,
    /// The bucket that ends with the edge.
    bucket: usize,
}

/// The least time that is looked up; shorter ones are in the same bucket.
const LEAST: u64 = 8;
/// The greatest; longer ones are in the same bucket.
const GREATEST: u64 = (1 << 37) - 1;
/// Eighths up to the greatest time, and a few that are not used.
const EIGHTHS: [Eighth; 512] = eighths();

const fn eighths() -> [Eighth; 512] {
    let none = Eighth {
        edge: u64::MAX,
        bucket: EDGE_COUNT,
    };
    let mut eighths = [none; 512];
    let (mut at, mut bucket) = (8, 0);
    // Eighth 8 + n of octave e has the number 8 e + 8 + n, and begins with (8 + n) << e.
    while at < 8 * 35 {
        let start = (8 + at as u64 % 8) << (at / 8 - 1);
        while bucket < EDGE_COUNT && LATENCY_EDGES[bucket] < start {
            bucket += 1;
        }
        if bucket < EDGE_COUNT {
            eighths[at] = Eighth {
                edge: LATENCY_EDGES[bucket],
                bucket,
            };
        }
        at += 1;
    }
    eighths
}

/// Returns the place of the bucket of a time in nanoseconds. Costs some ten instructions.
#[inline]
pub(crate) fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.clamp(LEAST, GREATEST);
    let octave = (nanos | LEAST).ilog2() as usize - 3;
    let eighth = EIGHTHS[(octave * 8 + (nanos >> octave) as usize) & 511];
    eighth.bucket + usize::from(nanos > eighth.edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edge_ends_its_bucket() {
        assert_eq!(
            (LATENCY_EDGES[0], LATENCY_EDGES[80]),
            (1_000, 100_000_000_000)
        );
        assert!(LATENCY_EDGES.is_sorted());
        for (at, &edge) in LATENCY_EDGES.iter().enumerate() {
            assert_eq!(bucket_of(edge), at, "{edge}");
            assert_eq!(bucket_of(edge + 1), at + 1, "{edge}");
        }
        for (nanos, bucket) in [(0, 0), (7, 0), (u64::MAX, 81), (100_000_000_001, 81)] {
            assert_eq!(bucket_of(nanos), bucket, "{nanos}");
        }
        let mut nanos = 1;
        while nanos < 1 << 38 {
            let expected = LATENCY_EDGES.partition_point(|&edge| edge < nanos);
            assert_eq!(bucket_of(nanos), expected, "{nanos}");
            nanos += nanos / 97 + 1;
        }
    }

    #[test]
    fn boundaries_of_opentelemetry_are_edges() {
        for ms in [
            5, 10, 25, 50, 75, 100, 250, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000,
        ] {
            assert!(LATENCY_EDGES.contains(&(ms * 1_000_000)), "{ms} ms");
        }
    }
}
