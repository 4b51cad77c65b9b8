//! Nodes that vanish in a random schedule, and survivors that hear of it one after the other.

use super::Schedule;
use crate::violation::Violation;

impl Schedule {
    /// All survivors hear of all losses; then nothing waits for others any more.
    pub(super) fn tell_all(&mut self) -> Result<(), Violation> {
        let losses = self.cluster.setup().losses;
        while self.cluster.losses().gone().len() < losses {
            self.vanish();
        }
        while let Some((node, gone)) = self.cluster.untold().pop() {
            self.cluster.tell_lost(node, gone)?;
        }
        for who in self.live() {
            for key in self.keys.clone().into_iter().filter(|_| losses > 0) {
                self.cluster.pull(who, &[key])?;
                self.cluster.push(who, &[key])?;
                self.cluster.localize(who, &[key])?;
            }
        }
        Ok(())
    }

    /// A node vanishes, or somebody hears of it: whether there was anything of that kind to do.
    pub(super) fn lose(&mut self) -> Result<bool, Violation> {
        let losses = self.cluster.setup().losses;
        if losses == 0 {
            return Ok(false);
        }
        let gone = self.cluster.losses().gone().len();
        if gone < losses && self.rng.chance(1) {
            self.vanish();
            return Ok(true);
        }
        let untold = self.cluster.untold();
        if untold.is_empty() || !self.rng.chance(5) {
            return Ok(false);
        }
        let (node, gone) = self.rng.choose(&untold);
        self.cluster.tell_lost(node, gone).map(|()| true)
    }

    pub(super) fn vanish(&mut self) {
        let node = self.node();
        let all = self.rng.chance(30);
        let rng = &mut self.rng;
        self.cluster.vanish(node, |_, count| if all { count } else { rng.within(0..count + 1) });
    }
}
