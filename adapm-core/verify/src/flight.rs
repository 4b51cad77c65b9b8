//! Messages, entry by entry: for the record of entries in flight, and for display.

use core::fmt;

use adapm_core::id::{Counter, Key, NodeId};
use adapm_core::wire::Message;
use adapm_core::wire::message::{
    Asked, Barrier, Body, GrantKind, Grants, Mark, Operation, Quiesce, SyncRequest, SyncResponse,
};

/// The kind of an entry of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the variants are the lists of the messages, named as there")]
pub enum Kind {
    Delta,
    SetEntry,
    Release,
    Intent,
    Localize,
    GrantReplica,
    GrantOwner,
    GrantRemote,
    Refresh,
    HandOver,
    ForwardIntent,
    ForwardLocalize,
    Pull,
    Push,
    Set,
    ForwardPull,
    ForwardPush,
    ForwardSet,
    AnswerPull,
    AnswerDone,
    RetryIntent,
    RetryOperation,
    Residence,
}

impl Kind {
    /// All kinds, in the order of the messages.
    pub const ALL: [Self; 23] = [
        Self::Delta,
        Self::SetEntry,
        Self::Release,
        Self::Intent,
        Self::Localize,
        Self::GrantReplica,
        Self::GrantOwner,
        Self::GrantRemote,
        Self::Refresh,
        Self::HandOver,
        Self::ForwardIntent,
        Self::ForwardLocalize,
        Self::Pull,
        Self::Push,
        Self::Set,
        Self::ForwardPull,
        Self::ForwardPush,
        Self::ForwardSet,
        Self::AnswerPull,
        Self::AnswerDone,
        Self::RetryIntent,
        Self::RetryOperation,
        Self::Residence,
    ];

    /// Returns true if the value adds to a main copy when it arrives there.
    #[must_use]
    pub fn is_update(self) -> bool {
        matches!(self, Self::Delta | Self::Push | Self::ForwardPush)
    }

    /// Returns true if the entry makes its receiver the owner.
    #[must_use]
    pub fn is_ownership(self) -> bool {
        matches!(self, Self::GrantOwner | Self::HandOver)
    }

    fn of_operation(self, forwarded: bool) -> Self {
        match self {
            Self::Pull if forwarded => Self::ForwardPull,
            Self::Push if forwarded => Self::ForwardPush,
            Self::Set if forwarded => Self::ForwardSet,
            kind => kind,
        }
    }
}

/// One entry of one message.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The kind.
    pub kind: Kind,
    /// The key.
    pub key: Key,
    /// Its counter.
    pub counter: Option<Counter>,
    /// `[value_len]` if the entry carries a value, otherwise empty.
    pub value: Vec<i64>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.key)?;
        match self.counter {
            Some(counter) => write!(f, " {counter}"),
            None => Ok(()),
        }
    }
}

/// Returns the entries of `message`, whose values have `value_len(key)` elements.
#[must_use]
pub fn entries(message: &Message, value_len: impl Fn(Key) -> usize) -> Vec<Entry> {
    let mut reader = Reader { entries: Vec::new(), rest: message.values.values(), value_len };
    match &*message.body {
        Body::SyncRequest(request) => reader.request(request),
        Body::SyncResponse(response) => reader.response(response),
        Body::Grant(grants) => reader.grants(grants),
        Body::Forward(forward) => {
            reader.asked(Kind::ForwardIntent, &forward.intents, false);
            reader.asked(Kind::ForwardLocalize, &forward.localizes, false);
            reader.operation(&forward.operation, true);
        }
        Body::Operation(operation) => reader.operation(operation, false),
        Body::Answer(answer) => {
            reader.asked(Kind::AnswerPull, &answer.pulls, true);
            reader.asked(Kind::AnswerDone, &answer.done, false);
        }
        Body::Retry(retry) => {
            reader.keys(Kind::RetryIntent, &retry.intents, false);
            reader.keys(Kind::RetryOperation, &retry.operations, false);
        }
        Body::Residence(residence) => reader.asked(Kind::Residence, &residence.at, false),
        Body::News | Body::Barrier(_) | Body::Quiesce(_) => {}
    }
    reader.entries
}

/// Returns the node that asked for the entries of `message` from `from`, if they are questions.
#[must_use]
pub fn origin(from: NodeId, message: &Message) -> Option<NodeId> {
    match &*message.body {
        Body::SyncRequest(_) | Body::Operation(_) => Some(from),
        Body::Forward(forward) => Some(forward.origin),
        _ => None,
    }
}

/// Describes `message` in one line: its name and its entries, without values.
#[must_use]
pub fn describe(message: &Message, value_len: impl Fn(Key) -> usize) -> String {
    let name = match &*message.body {
        Body::SyncRequest(request) if request.mark != Mark::None => "SyncRequest(sync)",
        Body::SyncRequest(_) => "SyncRequest",
        Body::SyncResponse(response) if response.more => "SyncResponse(more)",
        Body::SyncResponse(_) => "SyncResponse",
        Body::Grant(_) => "Grant",
        Body::News => "News",
        Body::Forward(forward) => {
            return format!("Forward of {}: {:?}", forward.origin, entries(message, value_len));
        }
        Body::Operation(_) => "Operation",
        Body::Answer(_) => "Answer",
        Body::Retry(_) => "Retry",
        Body::Residence(_) => "Residence",
        Body::Barrier(Barrier::Arrived { .. }) => "Barrier arrived",
        Body::Barrier(_) => "Barrier",
        Body::Quiesce(Quiesce::Probe { .. }) => "Quiesce probe",
        Body::Quiesce(_) => "Quiesce",
    };
    let entries = entries(message, value_len);
    if entries.is_empty() { String::from(name) } else { format!("{name}: {entries:?}") }
}

struct Reader<'a, F> {
    entries: Vec<Entry>,
    rest: &'a [i64],
    value_len: F,
}

impl<F: Fn(Key) -> usize> Reader<'_, F> {
    fn request(&mut self, request: &SyncRequest) {
        self.keys(Kind::Delta, &request.deltas, true);
        self.keys(Kind::SetEntry, &request.sets, true);
        self.keys(Kind::Release, &request.releases, false);
        self.asked(Kind::Intent, &request.intents, false);
        self.asked(Kind::Localize, &request.localizes, false);
    }

    fn response(&mut self, response: &SyncResponse) {
        self.grants(&response.grants);
        self.keys(Kind::Refresh, &response.refreshes, true);
        let hand_overs = &response.hand_overs;
        for ((key, counter), &with_value) in hand_overs.at.iter().zip(&hand_overs.with_value) {
            self.entry(Kind::HandOver, key, Some(counter), with_value);
        }
    }

    fn grants(&mut self, grants: &Grants) {
        for ((key, counter), kind) in grants.at.iter().zip(&grants.kinds) {
            let (kind, with_value) = match kind {
                GrantKind::Replica => (Kind::GrantReplica, true),
                GrantKind::Owner => (Kind::GrantOwner, true),
                GrantKind::Remote => (Kind::GrantRemote, false),
            };
            self.entry(kind, key, Some(counter), with_value);
        }
    }

    fn operation(&mut self, operation: &Operation, forwarded: bool) {
        self.asked(Kind::Pull.of_operation(forwarded), &operation.pulls, false);
        self.asked(Kind::Push.of_operation(forwarded), &operation.pushes, true);
        self.asked(Kind::Set.of_operation(forwarded), &operation.sets, true);
    }

    fn asked(&mut self, kind: Kind, asked: &Asked, with_value: bool) {
        for (key, counter) in asked.iter() {
            self.entry(kind, key, Some(counter), with_value);
        }
    }

    fn keys(&mut self, kind: Kind, keys: &[Key], with_value: bool) {
        for &key in keys {
            self.entry(kind, key, None, with_value);
        }
    }

    fn entry(&mut self, kind: Kind, key: Key, counter: Option<Counter>, with_value: bool) {
        let len = if with_value { (self.value_len)(key) } else { 0 };
        let (value, behind) = self.rest.split_at(len);
        self.rest = behind;
        self.entries.push(Entry { kind, key, counter, value: value.to_vec() });
    }
}
