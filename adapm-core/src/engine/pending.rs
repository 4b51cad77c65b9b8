//! Entries of other nodes that are passed on, or wait here for a grant (Lapse §3.2, Lapse §3.3; protocol, section 5).

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::engine::outgoing::Entry;
use crate::engine::state::{AskedFor, Asker, Parked};
use crate::id::{Counter, Key};
use crate::policy::Policy;
use crate::route::Hop;
use crate::store::Store;

impl<S: Store, P: Policy> Engine<S, P> {
    /// Passes an entry on, or parks it until this node's grant arrives, or asks its origin to try again.
    pub(super) fn pass_on(
        &mut self,
        hop: Hop,
        asker: Asker,
        key: Key,
        counter: Counter,
        asked: AskedFor<&[S::Value]>,
    ) {
        let Asker { origin, hops, .. } = asker;
        match hop {
            Hop::Here => unreachable!("an owner serves what reaches it"),
            Hop::Next(location) => {
                let forgetful = planted!(self.ctx, ForgetForwardCounter);
                let counter = if forgetful { Counter(0) } else { location.counter };
                let entry = Entry { key, counter, ticket: asker.onward(key), asked: asked.owned() };
                self.outgoing.add_forward(location.node, origin, hops.saturating_add(1), entry);
            }
            // The grant that would let it go on may be gone, and its origin will fail it.
            Hop::Park if self.ctx.first_lost.is_some() => {}
            Hop::Park if self.peers[origin.index()].parked < self.ctx.config.parked_max => {
                self.peers[origin.index()].parked += 1;
                let parked = Parked { asker, counter, asked: asked.owned() };
                self.parked.entry(key).or_default().push(parked);
            }
            Hop::Park => {
                if planted!(self.ctx, ParkAndTurnAway) && matches!(asked, AskedFor::Push(_)) {
                    self.peers[origin.index()].parked += 1;
                    let parked = Parked { asker, counter, asked: asked.owned() };
                    self.parked.entry(key).or_default().push(parked);
                }
                self.turn_away(asker, key, counter, asked);
            }
        }
    }

    /// Asks the origin to ask again.
    pub(super) fn turn_away(
        &mut self,
        asker: Asker,
        key: Key,
        counter: Counter,
        asked: AskedFor<&[S::Value]>,
    ) {
        let origin = asker.origin;
        self.ctx.stats.retries += 1;
        if origin != self.ctx.config.node {
            let ticket = asker.reply();
            let entry = Entry { key, counter, ticket, asked: asked.map(|_| Vec::new()) };
            self.outgoing.add_retry(origin, entry);
        } else if matches!(asked, AskedFor::Intent | AskedFor::Localize) {
            self.retry_request(key);
        } else {
            self.agenda.resend.push(key);
        }
    }

    /// This node's copy of `key` has changed: looks again at what waited for it.
    pub(super) fn unpark(&mut self, key: Key) {
        // As most of the time: an empty map is not looked into.
        if self.parked.is_empty() {
            return;
        }
        for parked in self.parked.remove(&key).unwrap_or_default() {
            let Parked { asker, counter, asked } = parked;
            self.peers[asker.origin.index()].parked -= 1;
            if planted!(self.ctx, ForgetParkedEntries) {
                continue;
            }
            self.serve_or_pass(asker, key, counter, asked.borrowed());
        }
    }
}
