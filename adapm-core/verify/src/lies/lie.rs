//! The lies, one message or a few at a time.

use core::fmt;

use adapm_core::id::{Counter, Key, NodeId, Ticket, Version};
use adapm_core::layout::Layout;
use adapm_core::slot::State;
use adapm_core::value::Block;
use adapm_core::wire::Message;
use adapm_core::wire::message::{
    Answer, Asked, Barrier, Body, Forward, GrantKind, Grants, Keys, Operation, Owners, Quiesce,
    Residence, Retry, SyncRequest, SyncResponse,
};

use super::{KEYS, NODES, World, keys};
use crate::Bug;

/// Declares the lies: each with a description.
macro_rules! lies {
    ($($lie:ident: $what:literal;)+) => {
        /// A kind of lie.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Lie {
            $(#[doc = $what] $lie,)+
        }

        impl Lie {
            /// All lies.
            pub const ALL: [Self; [$(Self::$lie),+].len()] = [$(Self::$lie),+];

            /// Returns its description, in one sentence.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$lie => $what,)+
                }
            }
        }
    };
}

lies! {
    Grant: "Grants a key that a node waits for, or any other.";
    GrantWithTicket: "The same with a ticket of another entry, or a guessed one.";
    GrantInResponse: "The same in a response.";
    GrantAtMost: "Grants a key of its own under the highest counter, and keeps it.";
    GrantOldest: "Grants a key of its own with a version that nothing follows, and keeps it.";
    GrantToAll: "Grants a key of its own to all nodes that wait for it.";
    Refresh: "Refreshes a replica, its own or not.";
    HandOver: "Hands a replica over, its own or not.";
    ResponseTwice: "Sends an unrequested response.";
    Answer: "Answers an operation, its own or not.";
    AnswerWithTicket: "The same with a ticket of another entry, or a guessed one.";
    Retry: "Turns away an entry that a node waits for.";
    RetryWithTicket: "The same with a ticket of another entry, or a guessed one.";
    ForwardIntent: "Passes on an intent that no node has.";
    ForwardLocalize: "Passes on a localize that no worker called.";
    ForwardPull: "Passes on a pull that no worker called.";
    ForwardPush: "Passes on a push that no worker called.";
    ForwardBack: "Passes on an entry to its alleged origin.";
    ForwardWithTicket: "Passes on in another's name with a ticket that it has received.";
    Residence: "Reports false owners to a home.";
    Request: "Sends deltas, sets and releases of keys that it does not hold.";
    AskAgain: "Asks for keys that it has.";
    Replay: "Repeats its messages.";
    Alter: "Alters its engine's messages: counters, tickets, owners.";
    Drop: "Drops some of its engine's messages.";
    Collective: "Takes steps of barriers and quiesces that no worker called.";
    News: "Sends news without end.";
    Mute: "Stops sending.";
}

impl Lie {
    /// Returns the lie that a planted mistake accepts.
    #[must_use]
    pub fn believed_by(bug: Bug) -> Option<Self> {
        match bug {
            Bug::BelieveAnyForward => Some(Self::ForwardIntent),
            Bug::BelieveAnyGrant => Some(Self::Grant),
            Bug::BelieveAnyRetry => Some(Self::Retry),
            Bug::BelieveAnyAnswer => Some(Self::Answer),
            Bug::BelieveAnyResidence => Some(Self::Residence),
            Bug::BlameLateAnswer => Some(Self::ForwardPull),
            _ => None,
        }
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}"))
    }
}

impl World {
    /// Sends `lie` once, if there is an opportunity.
    pub(super) fn tell(&mut self, lie: Lie) {
        let honest = self.honest();
        let to = self.rng.choose(&honest);
        match lie {
            Lie::Grant | Lie::GrantWithTicket | Lie::GrantInResponse => self.tell_grant(to, lie),
            Lie::GrantAtMost | Lie::GrantOldest => {
                let wanted = self.wanted_of_liar(to);
                self.grant_own(to, &wanted, lie);
            }
            Lie::GrantToAll => {
                for to in honest {
                    let wanted = self.wanted_of_liar(to);
                    self.grant_own(to, &wanted, lie);
                }
            }
            Lie::Refresh | Lie::HandOver | Lie::ResponseTwice => self.tell_response(to, lie),
            Lie::Answer | Lie::AnswerWithTicket => self.tell_answer(to, lie),
            Lie::Retry | Lie::RetryWithTicket => self.tell_retry(to, lie),
            Lie::ForwardIntent
            | Lie::ForwardLocalize
            | Lie::ForwardPull
            | Lie::ForwardPush
            | Lie::ForwardBack
            | Lie::ForwardWithTicket => self.tell_forward(to, lie),
            Lie::Residence => self.tell_residence(to),
            Lie::Request | Lie::AskAgain => self.tell_request(to, lie),
            Lie::Replay => {
                if !self.said.is_empty() {
                    let at = self.rng.within(0..self.said.len());
                    let (to, message) = self.said[at].clone();
                    self.say(to, message);
                }
            }
            Lie::Collective => {
                let body = self.any_step();
                self.say(to, Message::bare(body));
            }
            Lie::News => (0..50).for_each(|_| self.say(to, Message::bare(Body::News))),
            Lie::Alter | Lie::Drop | Lie::Mute => self.manner = Some(lie),
        }
    }

    /// Alters a message of the liar's engine. Returns false if the message is dropped.
    pub(super) fn alter(&mut self, to: NodeId, message: &mut Message) -> bool {
        match self.manner {
            Some(Lie::Mute) => return false,
            Some(Lie::Drop) if self.rng.chance(30) => return false,
            Some(Lie::Alter) if self.rng.chance(40) => {}
            _ => return true,
        }
        if self.manner == Some(Lie::Drop) {
            return true;
        }
        self.lies += 1;
        let counter = self.any_counter(Key(0));
        let ticket = self.some_ticket();
        let all = |at: &mut Asked| at.counters.iter_mut().for_each(|each| *each = counter);
        match &mut *message.body {
            Body::SyncRequest(request) => all(&mut request.intents),
            Body::SyncResponse(response) => all(&mut response.grants.at),
            Body::Grant(grants) => all(&mut grants.at),
            Body::Forward(forward) if self.rng.chance(50) => {
                forward.tickets.iter_mut().for_each(|each| *each = ticket)
            }
            Body::Forward(forward) => {
                all(&mut forward.intents);
                all(&mut forward.operation.pulls);
                // A push that becomes a pull gets another answer than its origin expects.
                if forward.operation.pulls.is_empty() && forward.operation.sets.is_empty() {
                    forward.operation.pulls = core::mem::take(&mut forward.operation.pushes);
                    message.values = Block::new();
                }
            }
            Body::Operation(operation) => operation.ticket = ticket,
            Body::Answer(answer) => {
                all(&mut answer.pulls);
                all(&mut answer.done);
            }
            Body::Residence(residence) => {
                let owner = NodeId(self.rng.within(0..NODES) as u16);
                residence.owners.iter_mut().filter(|_| owner != to).for_each(|each| *each = owner);
            }
            _ => {}
        }
        true
    }

    fn tell_grant(&mut self, to: NodeId, lie: Lie) {
        let wanted: Vec<Key> =
            keys().filter(|key| self.state(to, *key) == State::Requested).collect();
        let chosen = self.of_or_any(&wanted);
        let kinds = [GrantKind::Owner, GrantKind::Replica, GrantKind::Remote];
        let kinds: Vec<GrantKind> = chosen.iter().map(|_| self.rng.choose(&kinds)).collect();
        let values = kinds.iter().filter(|kind| **kind != GrantKind::Remote).count();
        let versions = chosen.iter().map(|_| self.any_version()).collect();
        let mut grants = Grants { at: self.asked(&chosen), kinds, versions, tickets: Vec::new() };
        if lie == Lie::GrantWithTicket {
            grants.tickets = chosen.iter().map(|_| self.some_ticket()).collect();
        }
        let body = if lie == Lie::GrantInResponse {
            Body::SyncResponse(SyncResponse { grants, ..SyncResponse::default() })
        } else {
            Body::Grant(grants)
        };
        self.say(to, message(body, values, 1_000_000));
    }

    /// Returns the keys owned by the liar for which `to` waits.
    fn wanted_of_liar(&self, to: NodeId) -> Vec<Key> {
        let mine = |key: &Key| self.state(self.liar, *key) == State::Main;
        keys().filter(|key| mine(key) && self.state(to, *key) == State::Requested).collect()
    }

    fn grant_own(&mut self, to: NodeId, wanted: &[Key], lie: Lie) {
        for &key in wanted {
            let counter = self.engines[self.liar.index()].engine().inspect(key).packed.counter();
            let counter = if lie == Lie::GrantAtMost { Counter::MAX } else { counter.next() };
            let version = if lie == Lie::GrantOldest { Version(u64::MAX) } else { Version(3) };
            // With the ticket by which it was passed on, if it was.
            let grants = Grants {
                at: [(key, counter)].into_iter().collect(),
                kinds: vec![GrantKind::Owner],
                versions: vec![version],
                tickets: self.ticket_heard(to, key).into_iter().collect(),
            };
            self.say(to, message(Body::Grant(grants), 1, 5));
        }
    }

    fn tell_response(&mut self, to: NodeId, lie: Lie) {
        let held: Vec<Key> = keys().filter(|key| self.state(to, *key) == State::Replica).collect();
        let chosen = self.of_or_any(&held);
        let mut response = SyncResponse { more: self.rng.chance(50), ..SyncResponse::default() };
        let mut values = 0;
        let versions: Vec<Version> = chosen.iter().map(|_| self.any_version()).collect();
        match lie {
            Lie::Refresh => {
                values = chosen.len();
                (response.refreshes, response.versions) = (Keys(chosen), versions);
            }
            Lie::HandOver => {
                let with_value: Vec<bool> = chosen.iter().map(|_| self.rng.chance(50)).collect();
                values = with_value.iter().filter(|with_value| **with_value).count();
                response.hand_overs = Owners { at: self.asked(&chosen), versions, with_value };
            }
            _ => response.synced = self.rng.chance(20),
        }
        self.say(to, message(Body::SyncResponse(response), values, 1_000_000));
    }

    fn tell_answer(&mut self, to: NodeId, lie: Lie) {
        let chosen = self.of_or_any(&self.unanswered_at(to));
        let at = self.asked(&chosen);
        let mut answer = Answer::default();
        let pulls = self.rng.chance(50);
        *(if pulls { &mut answer.pulls } else { &mut answer.done }) = at;
        if lie == Lie::AnswerWithTicket {
            answer.tickets = chosen.iter().map(|_| self.some_ticket()).collect();
        }
        self.say(to, message(Body::Answer(answer), if pulls { chosen.len() } else { 0 }, 7));
    }

    fn tell_retry(&mut self, to: NodeId, lie: Lie) {
        let intents: Vec<Key> =
            keys().filter(|key| self.state(to, *key) == State::Requested).collect();
        let operations = self.unanswered_at(to);
        let entries = intents.len() + operations.len();
        let mut retry =
            Retry { intents: Keys(intents), operations: Keys(operations), tickets: Vec::new() };
        if lie == Lie::RetryWithTicket {
            retry.tickets = (0..entries).map(|_| self.some_ticket()).collect();
        }
        if entries > 0 {
            self.say(to, Message::bare(Body::Retry(retry)));
        }
    }

    fn tell_forward(&mut self, to: NodeId, lie: Lie) {
        let honest = self.honest();
        let others: Vec<NodeId> = honest.into_iter().filter(|node| *node != to).collect();
        let origin = if lie == Lie::ForwardBack { to } else { self.rng.choose(&others) };
        let chosen = self.of_or_any(&[]);
        let at = self.asked(&chosen);
        let mut forward = Forward {
            origin,
            hops: self.rng.within(0..3) as u32,
            intents: Asked::default(),
            localizes: Asked::default(),
            operation: Operation::default(),
            tickets: chosen.iter().map(|_| self.some_ticket()).collect(),
        };
        let lie = match lie {
            Lie::ForwardBack | Lie::ForwardWithTicket => self.rng.choose(&[
                Lie::ForwardIntent,
                Lie::ForwardLocalize,
                Lie::ForwardPull,
                Lie::ForwardPush,
            ]),
            _ => {
                forward.tickets.fill(Ticket(self.rng.bits().max(1)));
                lie
            }
        };
        let list = match lie {
            Lie::ForwardIntent => &mut forward.intents,
            Lie::ForwardLocalize => &mut forward.localizes,
            Lie::ForwardPull => &mut forward.operation.pulls,
            _ => &mut forward.operation.pushes,
        };
        *list = at;
        let values = forward.operation.pushes.len();
        self.say(to, message(Body::Forward(forward), values, 0));
    }

    fn tell_residence(&mut self, to: NodeId) {
        let at_home: Vec<Key> = keys().filter(|key| Layout::home(*key, NODES) == to).collect();
        let chosen = self.of_or_any(&at_home);
        let chosen: Vec<Key> = chosen.into_iter().filter(|key| at_home.contains(key)).collect();
        let others: Vec<NodeId> = self.honest().into_iter().filter(|node| *node != to).collect();
        let owners = chosen.iter().map(|_| self.rng.choose(&others)).collect();
        let mut at = self.asked(&chosen);
        at.counters.iter_mut().for_each(|counter| counter.0 = counter.0.max(1));
        self.say(to, Message::bare(Body::Residence(Residence { at, owners })));
    }

    fn tell_request(&mut self, to: NodeId, lie: Lie) {
        let chosen = self.of_or_any(&[]);
        let mut request = SyncRequest::default();
        let mut values = 0;
        match self.rng.within(0..4) {
            _ if lie == Lie::AskAgain => {
                let liar = self.liar;
                let held =
                    |key: &Key| matches!(self.state(liar, *key), State::Main | State::Replica);
                let held: Vec<Key> = keys().filter(held).collect();
                request.intents = self.asked(&held);
            }
            0 => {
                values = chosen.len();
                request.deltas = Keys(chosen);
            }
            1 => {
                values = chosen.len();
                request.sets = Keys(chosen);
            }
            2 => request.renews = Keys(chosen),
            _ => request.releases = Keys(chosen),
        }
        self.say(to, message(Body::SyncRequest(request), values, 0));
    }

    fn any_step(&mut self) -> Body {
        let far = self.rng.bits() % (1 << 20);
        let near = self.rng.bits() % 3;
        match self.rng.within(0..10) {
            0 => Body::Barrier(Barrier::Arrived { number: near }),
            1 => Body::Barrier(Barrier::Passed { number: near }),
            2 => Body::Barrier(Barrier::Missing { number: far, nodes: vec![NodeId(1)] }),
            3 => Body::Barrier(Barrier::Ended),
            4 => Body::Quiesce(Quiesce::Arrived { number: near }),
            5 => Body::Quiesce(Quiesce::Probe { wave: far, settle: far.is_multiple_of(2) }),
            6 => Body::Quiesce(Quiesce::Report {
                wave: near,
                busy: false,
                sent: u64::MAX,
                applied: u64::MAX,
            }),
            7 => Body::Quiesce(Quiesce::Done { number: near }),
            8 => Body::Quiesce(Quiesce::Leaving),
            _ => Body::Quiesce(Quiesce::Left),
        }
    }

    /// Returns the keys on which an operation of `node` is unanswered.
    fn unanswered_at(&self, node: NodeId) -> Vec<Key> {
        keys()
            .filter(|key| self.engines[node.index()].engine().inspect(*key).unanswered.is_some())
            .collect()
    }

    /// Returns mostly one of `keys`, otherwise some of all.
    fn of_or_any(&mut self, among: &[Key]) -> Vec<Key> {
        if among.is_empty() || self.rng.chance(20) {
            self.some_keys(2)
        } else {
            vec![self.rng.choose(among)]
        }
    }

    fn asked(&mut self, keys: &[Key]) -> Asked {
        keys.iter().map(|key| (*key, self.any_counter(*key))).collect()
    }

    /// Returns a counter that may pass, or one at a bound.
    fn any_counter(&mut self, key: Key) -> Counter {
        let known = self
            .engines
            .iter()
            .map(|engine| engine.engine().inspect(key).packed.counter().0)
            .max()
            .unwrap_or(0);
        let all = [0, 1, known, known + 1, known + 2, 1 << 30, Counter::MAX.0 - 1, Counter::MAX.0];
        Counter(self.rng.choose(&all).min(Counter::MAX.0))
    }

    fn any_version(&mut self) -> Version {
        let some = self.rng.bits() % 20;
        Version(self.rng.choose(&[0, 1, 1 << 60, u64::MAX, some]))
    }

    /// Returns any ticket or secret that the liar has received; a guess if it has none.
    fn some_ticket(&mut self) -> Ticket {
        let key = Key(self.rng.bits() % KEYS);
        let mut known = Vec::new();
        for (_, message) in &self.heard {
            match &*message.body {
                Body::Forward(forward) => known.extend(&forward.tickets),
                Body::SyncRequest(request) => {
                    known.extend([request.ticket, request.ticket.of_key(key)])
                }
                Body::Operation(operation) => {
                    known.extend([operation.ticket, operation.ticket.of_key(key)])
                }
                _ => {}
            }
        }
        known.retain(|ticket| *ticket != Ticket::NONE);
        if known.is_empty() { Ticket(self.rng.bits().max(1)) } else { self.rng.choose(&known) }
    }

    /// Returns the ticket with which an intent or localize of `origin` for `key` was passed on to
    /// the liar.
    fn ticket_heard(&self, origin: NodeId, key: Key) -> Option<Ticket> {
        self.heard.iter().rev().find_map(|(_, message)| {
            let Body::Forward(forward) = &*message.body else { return None };
            let keys = forward.intents.keys.iter().chain(forward.localizes.keys.iter());
            let found = keys.zip(&forward.tickets).find(|(each, _)| **each == key);
            found.filter(|_| forward.origin == origin).map(|(_, ticket)| *ticket)
        })
    }
}

fn message(body: Body, values: usize, value: i64) -> Message {
    let mut block = Block::new();
    (0..values).for_each(|_| block.push(&[value]));
    Message { body: Box::new(body), values: block }
}
