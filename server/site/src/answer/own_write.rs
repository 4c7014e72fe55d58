//! A visitor who has written through another node sees the write on this node too (coherence.md,
//! rule 19).
//!
//! The answer to a form has a cookie with the position of the write (`session/seen_writes.rs`). In
//! general this node's feed has passed the position before the next request, and then the cookie
//! costs one comparison. Otherwise the request waits a moment for the feed. Past that moment its
//! page is read afresh: a read that begins now sees every earlier commit.

use std::time::Duration;

use base_clock::Boottime;
use millpond_db::Position;
use millpond_http::Response;

use crate::{answer::Ask, labels::AnswerKind};
use millpond_pages::CacheStatus;

impl Ask {
    /// Answers a visitor whose write this node may not have applied yet.
    ///
    /// All queries are read. *Counterexample* of a flight of the page itself, even one that has not
    /// begun: its leader may combine the page from stored results, which are valid as far as this
    /// node knows.
    pub(crate) async fn answer_writer(self, written: Vec<Position>) -> Response {
        for position in written {
            if !self.core.database.pass(position).await {
                return self.answer_afresh(CacheStatus::OwnWrite).await;
            }
        }
        match self.core.store.get(&self.key, Boottime::now()) {
            Ok(hit) => {
                self.page.counters.hit(0);
                let timing = self.timing(Duration::ZERO, Duration::ZERO);
                let lines = self.lines(CacheStatus::Hit, timing);
                AnswerKind::Hit.of(self.respond(hit.value(), lines))
            }
            Err(why) => self.answer(why).await,
        }
    }
}
