//! Messages taken apart and put together again, so that lists and values still match.

use adapm_core::id::{Counter, Key, Ticket};
use adapm_core::layout::Layout;
use adapm_core::value::Block;
use adapm_core::wire::Message;
use adapm_core::wire::message::{
    Answer, Asked, Body, Forward, Grants, Operation, SyncRequest, SyncResponse,
};

use crate::flight::{self, Entry, Kind};

/// An entry that was taken out of a message.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) key: Key,
    pub(super) counter: Counter,
    /// The ticket that an answer to it carries.
    pub(super) ticket: Ticket,
}

/// Takes the entries that `drops` selects out of `message`. Only for the kinds that mistakes drop:
/// grants, hand-overs and residence facts stay.
pub(super) fn take(
    message: &mut Message,
    layout: &Layout,
    mut drops: impl FnMut(Kind, Key, Counter) -> bool,
) -> Vec<Taken> {
    let entries = entries(message, layout);
    let mut taken = Vec::new();
    let mut values = Block::new();
    let mut at = 0;
    // Entries are in the order of the lists.
    let mut stays = |_: usize| {
        let entry = &entries[at];
        at += 1;
        let counter = entry.counter.unwrap_or_default();
        let goes = drops(entry.kind, entry.key, counter);
        if goes {
            taken.push(Taken { key: entry.key, counter, ticket: Ticket::NONE });
        } else {
            values.push(&entry.value);
        }
        !goes
    };
    match &mut *message.body {
        Body::SyncRequest(SyncRequest { deltas, sets, releases, intents, localizes, .. }) => {
            for keys in [deltas, sets, releases] {
                sift(&mut keys.0, &mut stays);
            }
            for asked in [intents, localizes] {
                sift_asked(asked, &mut stays);
            }
        }
        Body::SyncResponse(SyncResponse { grants, refreshes, versions, hand_overs, .. }) => {
            (0..grants.at.len()).for_each(|at| assert!(stays(at), "grants stay"));
            let mask = sift(&mut refreshes.0, &mut stays);
            keep(versions, &mask);
            (0..hand_overs.at.len()).for_each(|at| assert!(stays(at), "hand-overs stay"));
        }
        Body::Grant(Grants { at, kinds, versions, tickets }) => {
            let mask = sift_asked(at, &mut stays);
            keep(kinds, &mask);
            keep(versions, &mask);
            note_tickets(tickets, &mask, &mut taken);
        }
        Body::Forward(Forward { intents, localizes, operation, tickets, .. }) => {
            let mut mask = sift_asked(intents, &mut stays);
            mask.extend(sift_asked(localizes, &mut stays));
            mask.extend(sift_operation(operation, &mut stays));
            note_tickets(tickets, &mask, &mut taken);
        }
        Body::Operation(operation) => {
            sift_operation(operation, &mut stays);
        }
        Body::Answer(Answer { pulls, done, tickets }) => {
            let mut mask = sift_asked(pulls, &mut stays);
            mask.extend(sift_asked(done, &mut stays));
            note_tickets(tickets, &mask, &mut taken);
        }
        Body::Retry(retry) => {
            let mut mask = sift(&mut retry.intents.0, &mut stays);
            mask.extend(sift(&mut retry.operations.0, &mut stays));
            note_tickets(&mut retry.tickets, &mask, &mut taken);
        }
        Body::Residence(_) | Body::News | Body::Barrier(_) | Body::Quiesce(_) => return taken,
    }
    message.values = values;
    taken
}

/// Returns the entries of a message, with their values.
pub(super) fn entries(message: &Message, layout: &Layout) -> Vec<Entry> {
    flight::entries(message, |key| layout.value_len(key).unwrap_or(0))
}

/// Returns the block of some values.
pub(super) fn block<'v>(values: impl Iterator<Item = &'v [i64]>) -> Block {
    let mut block = Block::new();
    values.for_each(|value| block.push(value));
    block
}

/// Returns the answer to an entry: the value read by a pull, otherwise that a push or set is done.
pub(super) fn answer_to(taken: &Taken, read: Option<&[i64]>) -> Message {
    let mut answer = Answer::default();
    let list = if read.is_some() { &mut answer.pulls } else { &mut answer.done };
    list.push(taken.key, taken.counter);
    answer.tickets.extend(Some(taken.ticket).filter(|ticket| *ticket != Ticket::NONE));
    let mut values = Block::new();
    values.push(read.unwrap_or_default());
    Message { body: Box::new(Body::Answer(answer)), values }
}

fn sift(keys: &mut Vec<Key>, stays: &mut impl FnMut(usize) -> bool) -> Vec<bool> {
    let mask: Vec<bool> = (0..keys.len()).map(stays).collect();
    keep(keys, &mask);
    mask
}

fn sift_asked(asked: &mut Asked, stays: &mut impl FnMut(usize) -> bool) -> Vec<bool> {
    let mask = sift(&mut asked.keys.0, stays);
    keep(&mut asked.counters, &mask);
    mask
}

fn sift_operation(operation: &mut Operation, stays: &mut impl FnMut(usize) -> bool) -> Vec<bool> {
    let lists = [&mut operation.pulls, &mut operation.pushes, &mut operation.sets];
    lists.into_iter().flat_map(|list| sift_asked(list, stays)).collect()
}

fn keep<T>(list: &mut Vec<T>, mask: &[bool]) {
    let mut mask = mask.iter();
    list.retain(|_| *mask.next().expect("parallel lists are equally long"));
}

/// Takes the tickets of entries that were taken out, if there are any.
fn note_tickets(tickets: &mut Vec<Ticket>, mask: &[bool], taken: &mut [Taken]) {
    if tickets.is_empty() {
        return;
    }
    let out = mask.iter().zip(&*tickets).filter(|(stays, _)| !**stays).map(|(_, ticket)| *ticket);
    let out: Vec<Ticket> = out.collect();
    taken.iter_mut().zip(out).for_each(|(taken, ticket)| taken.ticket = ticket);
    keep(tickets, mask);
}
