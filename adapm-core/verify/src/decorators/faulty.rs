//! A datagram network that loses, repeats, reorders and cuts datagrams, by a seed.
//!
//! Not here: delays in time, and pipes ([`crate::sim`] has both).

use crate::rng::Rng;

/// Rates of the faults per datagram, in percent. Defaults to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// The datagram never arrives.
    pub lost: u64,
    /// It arrives twice.
    pub repeated: u64,
    /// It arrives after one to four later ones.
    pub reordered: u64,
    /// It arrives without its end, possibly empty.
    pub cut: u64,
}

/// Counts of datagrams seen by a [`Faulty`], and of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Datagrams passed to [`Faulty::pass`].
    pub datagrams: u64,
    /// Lost datagrams.
    pub lost: u64,
    /// Datagrams sent twice.
    pub repeated: u64,
    /// Copies held back until after later datagrams.
    pub reordered: u64,
    /// Cut datagrams.
    pub cut: u64,
}

/// A bad network for datagrams, each with an address of type `A` (`()` if there is only one link).
/// Equal seeds and datagrams give equal results.
///
/// Put it between a transport and its socket: instead of sending a datagram, pass it through, and
/// send all datagrams that come out.
///
/// ```
/// use adapm_verify::{FaultRates, Faulty};
///
/// let rates = FaultRates { lost: 5, repeated: 5, reordered: 5, cut: 1 };
/// let mut network = Faulty::new(rates, 7);
/// let mut arrived = Vec::new();
/// for number in 0..1_000_u32 {
///     for (_to, bytes) in network.pass("n1", number.to_le_bytes().to_vec()) {
///         arrived.push(bytes); // or: socket.send_to(&bytes, to)
///     }
/// }
/// let counts = network.counts();
/// assert!(counts.lost > 0 && counts.repeated > 0 && counts.reordered > 0 && counts.cut > 0);
/// // All that is missing was lost, or is still held back: for at most four datagrams.
/// assert!(arrived.len() as u64 + counts.lost <= 1_000 + counts.repeated);
/// ```
#[derive(Clone, Debug)]
pub struct Faulty<A> {
    rates: FaultRates,
    rng: Rng,
    counts: FaultCounts,
    /// Datagrams held back, each with the number of later ones that go first.
    held: Vec<(u32, A, Vec<u8>)>,
}

impl<A: Clone> Faulty<A> {
    /// Creates a network with these fault rates; the seed decides which datagrams are affected.
    #[must_use]
    pub fn new(rates: FaultRates, seed: u64) -> Self {
        Self { rates, rng: Rng::new(seed), counts: FaultCounts::default(), held: Vec::new() }
    }

    /// Sends one datagram. Returns the datagrams that arrive now, in order: none, itself, copies,
    /// or older ones that were held back.
    #[must_use = "what is not sent on is lost"]
    pub fn pass(&mut self, to: A, mut bytes: Vec<u8>) -> Vec<(A, Vec<u8>)> {
        let late = self.overdue();
        let mut passed = Vec::new();
        self.counts.datagrams += 1;
        if self.rng.chance(self.rates.lost) {
            self.counts.lost += 1;
            return late;
        }
        if !bytes.is_empty() && self.rng.chance(self.rates.cut) {
            self.counts.cut += 1;
            bytes.truncate(self.rng.within(0..bytes.len()));
        }
        let is_repeated = self.rng.chance(self.rates.repeated);
        self.counts.repeated += u64::from(is_repeated);
        for _ in 0..=u32::from(is_repeated) {
            if self.rng.chance(self.rates.reordered) {
                self.counts.reordered += 1;
                let behind = self.rng.number(1..BEHIND_MAX + 1) as u32;
                self.held.push((behind, to.clone(), bytes.clone()));
            } else {
                passed.push((to.clone(), bytes.clone()));
            }
        }
        passed.extend(late);
        passed
    }

    /// Ends all faults: all later datagrams arrive, and those held back arrive with the next one.
    pub fn heal(&mut self) {
        self.rates = FaultRates::default();
        self.held.iter_mut().for_each(|(behind, ..)| *behind = 1);
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// Takes the datagrams that have been held back for long enough.
    fn overdue(&mut self) -> Vec<(A, Vec<u8>)> {
        self.held.iter_mut().for_each(|(behind, ..)| *behind -= 1);
        let (due, held): (Vec<_>, Vec<_>) =
            self.held.drain(..).partition(|(behind, ..)| *behind == 0);
        self.held = held;
        due.into_iter().map(|(_, to, bytes)| (to, bytes)).collect()
    }
}

/// Most later datagrams that overtake a reordered one.
const BEHIND_MAX: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of the datagrams that arrive, of `datagrams` numbered ones of eight
    /// bytes, and the lengths of cut ones.
    fn arrivals(rates: FaultRates, seed: u64) -> (Vec<u64>, Vec<usize>, FaultCounts) {
        let mut network = Faulty::new(rates, seed);
        let (mut whole, mut cut) = (Vec::new(), Vec::new());
        for number in 0..1_000_u64 {
            for ((), bytes) in network.pass((), number.to_le_bytes().to_vec()) {
                match bytes.as_slice().try_into() {
                    Ok(bytes) => whole.push(u64::from_le_bytes(bytes)),
                    Err(_) => cut.push(bytes.len()),
                }
            }
        }
        (whole, cut, network.counts())
    }

    #[test]
    fn each_fault_alone_is_itself_alone() {
        let all: Vec<u64> = (0..1_000).collect();
        let none = FaultRates::default();
        assert_eq!(arrivals(none, 1).0, all);

        let (lost, _, counts) = arrivals(FaultRates { lost: 20, ..none }, 1);
        assert!(lost.is_sorted() && (100..300).contains(&counts.lost), "{counts:?}");
        assert_eq!(lost.len() as u64 + counts.lost, 1_000);

        let (mut repeated, _, counts) = arrivals(FaultRates { repeated: 20, ..none }, 1);
        assert_eq!(repeated.len() as u64, 1_000 + counts.repeated);
        repeated.dedup();
        assert!(repeated == all && counts.repeated > 0);

        let (mut reordered, _, counts) = arrivals(FaultRates { reordered: 20, ..none }, 1);
        assert!(!reordered.is_sorted() && counts.reordered > 0);
        let places = reordered.iter().zip(0..);
        assert!(places.clone().all(|(number, place): (&u64, u64)| place <= number + BEHIND_MAX));
        reordered.sort_unstable();
        assert!(all.starts_with(&reordered[..990]), "what is held back arrives");

        let (whole, cut, counts) = arrivals(FaultRates { cut: 20, ..none }, 1);
        assert_eq!(whole.len() + cut.len(), 1_000);
        assert!(counts.cut == cut.len() as u64 && cut.contains(&0) && cut.contains(&7));
    }

    #[test]
    fn a_seed_decides_everything() {
        let rates = FaultRates { lost: 10, repeated: 10, reordered: 10, cut: 10 };
        assert_eq!(arrivals(rates, 3), arrivals(rates, 3));
        assert_ne!(arrivals(rates, 3), arrivals(rates, 4));
    }

    #[test]
    fn healing_lets_everything_through() {
        let mut network = Faulty::new(FaultRates { reordered: 100, ..FaultRates::default() }, 1);
        assert_eq!(network.pass(0, vec![1]), []);
        network.heal();
        assert_eq!(network.pass(0, vec![2]), [(0, vec![2]), (0, vec![1])]);
    }
}
