//! A visitor who has written through another node sees it here too (COHERENCE, rule 19).
//!
//! The answer to a form has a cookie with the position of the write (`session/seen.rs`). As a rule this node's feed has come there
//! before the next request does, and then the cookie costs a look at it. Else the request waits a moment for the feed, and past
//! that its page is read afresh: a read that begins now sees whatever was committed before.

use base_clock::Boottime;
use millpond_db::Position;
use millpond_http::Response;

use crate::{answer::Ask, rules::HIT};

impl Ask {
    /// Answers a visitor who has written what this node may not have come to.
    ///
    /// ✗ *A flight of the page itself, one that has not begun: whoever leads it may put the page together from kept results, which are
    /// valid as far as this node knows.* So it is one in which everything is read.
    pub(crate) async fn answer_writer(self, written: Vec<Position>) -> Response {
        for position in written {
            if !self.core.database.pass(position).await {
                let status = b"fwd=bypass; detail=own-write";
                return self.answer_afresh(status).await;
            }
        }
        match self.core.store.get(&self.key, Boottime::now()) {
            Ok(hit) => {
                self.page.counters.hit(0);
                self.respond(hit.value(), HIT)
            }
            Err(why) => self.answer(why).await,
        }
    }
}
