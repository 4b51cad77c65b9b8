//! Future events in virtual time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use adapm_core::Instant;

/// Events in the order of their times; those at the same time in the order in which they were
/// added.
///
/// ```
/// use adapm_core::Instant;
/// use adapm_verify::sim::EventQueue;
///
/// let mut events = EventQueue::default();
/// events.at(Instant::from_micros(7), "later");
/// events.at(Instant::from_micros(5), "first");
/// events.at(Instant::from_micros(5), "second");
/// assert_eq!(events.pop(), Some("first"));
/// assert_eq!(events.now(), Instant::from_micros(5));
/// assert_eq!((events.pop(), events.pop(), events.pop()), (Some("second"), Some("later"), None));
/// ```
#[derive(Debug)]
pub struct EventQueue<E> {
    now: Instant,
    entered: u64,
    items: BinaryHeap<Item<E>>,
}

#[derive(Debug)]
struct Item<E> {
    when: Instant,
    serial: u64,
    event: E,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { now: Instant::ZERO, entered: 0, items: BinaryHeap::new() }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event. One in the past happens now.
    pub fn at(&mut self, when: Instant, event: E) {
        self.entered += 1;
        self.items.push(Item { when: when.max(self.now), serial: self.entered, event });
    }

    /// Takes the next event, and advances the time to it.
    pub fn pop(&mut self) -> Option<E> {
        let item = self.items.pop()?;
        self.now = item.when;
        Some(item.event)
    }

    /// Returns the time of the last event taken.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the number of future events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if there are no future events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<E> Ord for Item<E> {
    /// Orders items for a max-heap: the earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.when, other.serial).cmp(&(self.when, self.serial))
    }
}

impl<E> PartialOrd for Item<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Item<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Item<E> {}
