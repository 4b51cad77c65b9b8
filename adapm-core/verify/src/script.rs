//! Scenarios in text files: commands for a [`Cluster`], each followed by its output.
//!
//! A line that begins with `>` is output: [`play`] drops it and writes the actual output, so a
//! correct file is its own result. `#` begins a comment. Ids are written `n1`, `w0`; keys have
//! names.
//!
//! | command | meaning |
//! | --- | --- |
//! | `nodes 4`, `workers 1`, `system adapm`, `caches off`, `block 16` | the cluster, before anything else; `block`: bytes of values in a message |
//! | `homes n1 n0 n1` | a table of homes instead of the hash: of keys 0, 1, 2, then again from the first |
//! | `hot n1 n2` | the nodes on which hot keys are hot; all, without this line |
//! | `key a home n0` | a key with that home; the first one is hot where the system has hot keys |
//! | `n1 w0 intent a b @0..@5` | signals intent |
//! | `n1 w0 clock 3` | raises the worker's clock by 3 |
//! | `n1 w0 pull a b`, `push`, `set`, `localize` | an operation; `waits` if it is not done at once |
//! | `n1 w0 wait_sync`, `barrier`, `quiesce`, `snapshot`, `tick`, `end`, `leave` | the same; a tick is a clock under a bound |
//! | `round n1` | a round of n1 begins |
//! | `deliver n1 n0` | delivers the first message from n1 to n0 |
//! | `vanish n2` | n2 is gone; its messages in flight still arrive, unless their receiver learns of the loss before |
//! | `lose n1 n2` | n1 learns that n2 is lost |
//! | `lose n2` | n2 vanishes, if it has not, and all others learn of it |
//! | `run` | delivers, and lets time pass, until the cluster is at rest |
//! | `show a` | the state of the key at every node |

use core::cell::RefCell;
use std::rc::Rc;

use adapm_core::engine::OpId;
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::policy::System;
use adapm_core::slot::State;

use crate::cluster::Cluster;
use crate::digits::{self, Seen};
use crate::oracle::NodeWorker;
use crate::setup::Setup;
use crate::violation::Violation;

/// Number of keys of a scenario's layout: every node is home of some.
const KEYS: u64 = 64;

/// Plays a scenario. Returns its commands and comments unchanged, each command followed by its
/// output.
///
/// # Errors
/// One line: the unreadable line, or the broken invariant.
pub fn play(text: &str) -> Result<String, String> {
    let mut stage = Stage::new();
    let mut result = String::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('>')) {
        let outputs =
            stage.play(line).map_err(|fault| format!("line {}: {line}: {fault}", number + 1))?;
        result += line;
        result.push('\n');
        for output in outputs {
            result += &format!("> {}\n", stage.with_names(&output));
        }
    }
    Ok(result)
}

struct Stage {
    setup: Setup,
    system: System,
    /// The nodes on which hot keys are hot, if not on all.
    hot_on: Option<Vec<NodeId>>,
    cluster: Option<Cluster>,
    names: Vec<(String, Key)>,
    open: Vec<(OpId, String)>,
    /// Messages delivered since the last call of `run`, as "n1 -> n0: ...".
    delivered: Rc<RefCell<Vec<String>>>,
}

/// The reason that a line cannot be played.
enum Fault {
    Unreadable(&'static str),
    Broken(Violation),
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unreadable(expected) => write!(f, "expected {expected}"),
            Self::Broken(violation) => write!(f, "{violation}"),
        }
    }
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

impl Stage {
    fn new() -> Self {
        Self {
            setup: Setup::new(System::Adapm, 4, 1, KEYS),
            system: System::Adapm,
            hot_on: None,
            cluster: None,
            names: Vec::new(),
            open: Vec::new(),
            delivered: Rc::default(),
        }
    }

    fn play(&mut self, line: &str) -> Result<Vec<String>, Fault> {
        let command = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = command.split_whitespace().collect();
        let mut outputs = match *words.as_slice() {
            [] => return Ok(Vec::new()),
            ["nodes", nodes] => self.configure(|setup| setup.nodes = nodes.parse().unwrap_or(0)),
            ["workers", workers] => {
                self.configure(|setup| setup.workers = workers.parse().unwrap_or(0))
            }
            ["homes", ref nodes @ ..] if !nodes.is_empty() => {
                let nodes = nodes.iter().map(|node| parse_node(node).map(|node| node.0));
                let nodes = nodes.collect::<Result<Vec<u16>, Fault>>()?;
                let table = nodes.into_iter().cycle().take(KEYS as usize).collect();
                self.configure(|setup| setup.table = Some(table))
            }
            ["hot", ref nodes @ ..] if !nodes.is_empty() => {
                let nodes = nodes.iter().map(|node| parse_node(node));
                self.hot_on = Some(nodes.collect::<Result<Vec<NodeId>, Fault>>()?);
                Ok(Vec::new())
            }
            ["caches", switch] => self.configure(|setup| setup.location_caches = switch == "on"),
            ["block", bytes] => {
                self.configure(|setup| setup.block_bytes_max = bytes.parse().unwrap_or(0))
            }
            ["system", name] => {
                self.system =
                    name.parse().map_err(|_| Fault::Unreadable("the name of a system"))?;
                Ok(Vec::new())
            }
            ["key", name, "home", node] => self.name_key(name, parse_node(node)?),
            ["show", name] => {
                let key = self.key(name)?;
                Ok(show(self.cluster(), key))
            }
            ["round", node] => {
                self.cluster().round(parse_node(node)?)?;
                Ok(Vec::new())
            }
            ["deliver", from, to] => self.deliver(parse_node(from)?, parse_node(to)?),
            ["vanish", node] => {
                let node = parse_node(node)?;
                self.cluster().vanish(node, |_, count| count);
                Ok(Vec::new())
            }
            ["lose", node, gone] => self.lose(parse_node(node)?, parse_node(gone)?),
            ["lose", node] => {
                self.cluster().lose(parse_node(node)?)?;
                Ok(Vec::new())
            }
            ["run"] => self.run(),
            [node, worker, ref rest @ ..] => {
                self.act((parse_node(node)?, parse_worker(worker)?), rest, command)
            }
            _ => Err(Fault::Unreadable("a command")),
        }?;
        outputs.extend(self.completed());
        Ok(outputs)
    }

    fn configure(&mut self, change: impl FnOnce(&mut Setup)) -> Result<Vec<String>, Fault> {
        if self.cluster.is_some() {
            return Err(Fault::Unreadable("no settings once the play has begun"));
        }
        change(&mut self.setup);
        Ok(Vec::new())
    }

    /// Returns the cluster, creating it on first use.
    fn cluster(&mut self) -> &mut Cluster {
        self.cluster.get_or_insert_with(|| {
            let mut fresh = Setup::new(self.system, self.setup.nodes, self.setup.workers, KEYS);
            if let Some(nodes) = &self.hot_on {
                let hot = fresh.hot.iter_mut().flatten().zip((0..).map(NodeId));
                hot.filter(|(_, node)| !nodes.contains(node)).for_each(|(hot, _)| hot.clear());
            }
            let Setup { location_caches, block_bytes_max, grants_max, .. } = self.setup;
            let table = self.setup.table.clone();
            let mut cluster = Cluster::new(Setup {
                table,
                location_caches,
                block_bytes_max,
                grants_max,
                ..fresh
            });
            let delivered = self.delivered.clone();
            cluster.tell_steps(move |step| {
                if let Some((_, message)) =
                    step.split_once(' ').filter(|(_, message)| message.contains(" -> "))
                {
                    delivered.borrow_mut().push(message.to_string());
                }
            });
            cluster
        })
    }

    fn name_key(&mut self, name: &str, home: NodeId) -> Result<Vec<String>, Fault> {
        let taken: Vec<Key> = self.names.iter().map(|(_, key)| *key).collect();
        let cluster = self.cluster();
        let mut keys =
            cluster.keys().filter(|key| cluster.setup().home(*key) == home && !taken.contains(key));
        let key = keys.next().ok_or(Fault::Unreadable("fewer keys"))?;
        self.names.push((name.to_string(), key));
        Ok(Vec::new())
    }

    fn key(&self, name: &str) -> Result<Key, Fault> {
        let named = self.names.iter().find(|(known, _)| known == name);
        named.map(|(_, key)| *key).ok_or(Fault::Unreadable("a key that was named before"))
    }

    fn deliver(&mut self, from: NodeId, to: NodeId) -> Result<Vec<String>, Fault> {
        if !self.cluster().deliver(from, to)? {
            return Err(Fault::Unreadable("a message on that way"));
        }
        Ok(self.delivered.take())
    }

    fn lose(&mut self, node: NodeId, gone: NodeId) -> Result<Vec<String>, Fault> {
        let losses = self.cluster().losses();
        if !losses.is_gone(gone) || losses.is_gone(node) {
            return Err(Fault::Unreadable("a node that is there and one that has vanished"));
        }
        self.cluster().tell_lost(node, gone)?;
        Ok(Vec::new())
    }

    /// Runs to rest. Prints messages by link only: their number and route is the story.
    fn run(&mut self) -> Result<Vec<String>, Fault> {
        self.cluster().settle()?;
        let delivered = self.delivered.take();
        let ways: Vec<&str> = delivered.iter().filter_map(|line| line.split(':').next()).collect();
        Ok(vec![match ways.len() {
            0 => String::from("no message"),
            1 => format!("1 message: {}", ways[0]),
            count => format!("{count} messages: {}", ways.join(", ")),
        }])
    }

    fn act(
        &mut self,
        who: NodeWorker,
        words: &[&str],
        command: &str,
    ) -> Result<Vec<String>, Fault> {
        let (verb, names) = words.split_first().ok_or(Fault::Unreadable("something to do"))?;
        let cluster = self.cluster();
        let op = match (*verb, names) {
            ("clock", &[clocks]) => {
                cluster.advance_clock(
                    who,
                    clocks.parse().map_err(|_| Fault::Unreadable("a number of clocks"))?,
                );
                return Ok(Vec::new());
            }
            ("intent", &[ref names @ .., window]) => {
                let window = parse_window(window)?;
                let keys = self.keys(names)?;
                self.cluster().intent(who, &keys, window)?;
                return Ok(Vec::new());
            }
            ("wait_sync", []) => cluster.wait_sync(who)?,
            ("tick", []) => cluster.tick(who)?,
            ("barrier", []) => cluster.barrier(who)?,
            ("quiesce", []) => cluster.quiesce(who)?,
            ("snapshot", []) => cluster.snapshot(who)?,
            ("end", []) => cluster.end(who)?,
            ("leave", []) => cluster.leave(who)?,
            (verb, names) => {
                let keys = self.keys(names)?;
                let cluster = self.cluster();
                match verb {
                    "pull" => cluster.pull(who, &keys)?,
                    "push" => cluster.push(who, &keys)?,
                    "set" => cluster.set(who, &keys)?,
                    "localize" => cluster.localize(who, &keys)?,
                    _ => {
                        return Err(Fault::Unreadable(
                            "pull, push, set, localize, intent, clock or the like",
                        ));
                    }
                }
            }
        };
        if self.cluster().is_done(op) {
            return Ok(vec![self.outcome(op)]);
        }
        self.open.push((op, command.trim().to_string()));
        Ok(vec![String::from("waits")])
    }

    fn keys(&self, names: &[&str]) -> Result<Vec<Key>, Fault> {
        names.iter().map(|name| self.key(name)).collect()
    }

    /// Returns operations that have ended since they were reported as waiting.
    fn completed(&mut self) -> Vec<String> {
        let open = core::mem::take(&mut self.open);
        let mut outputs = Vec::new();
        for (op, command) in open {
            if self.cluster().is_done(op) {
                outputs.push(format!("{command}: {}", self.outcome(op)));
            } else {
                self.open.push((op, command));
            }
        }
        outputs
    }

    fn outcome(&mut self, op: OpId) -> String {
        if self.cluster().is_failed(op) {
            return String::from("fails");
        }
        let read = self.cluster().read(op);
        if read.is_empty() {
            return String::from("done");
        }
        read.iter().map(Seen::to_string).collect::<Vec<_>>().join(" | ")
    }

    /// Replaces `k17` by the key's name in the scenario.
    fn with_names(&self, text: &str) -> String {
        let mut result = String::new();
        for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let (stem, end) = match word.chars().last().filter(|last| !last.is_alphanumeric()) {
                Some(end) => (&word[..word.len() - end.len_utf8()], Some(end)),
                None => (word, None),
            };
            let name = self.names.iter().find(|(_, key)| key.to_string() == stem);
            result += name.map_or(stem, |(name, _)| name);
            result.extend(end);
        }
        result
    }
}

/// Returns one line for every node that has or knows something about `key`.
fn show(cluster: &Cluster, key: Key) -> Vec<String> {
    cluster.nodes().filter_map(|node| show_at(cluster, node, key)).collect()
}

fn show_at(cluster: &Cluster, node: NodeId, key: Key) -> Option<String> {
    let row = cluster.row(node, key);
    let seen = |value: &[i64]| {
        digits::seen(key, value).map_or(String::from("unsound"), |seen| seen.to_string())
    };
    let known = || row.view.packed.location().map(|at| format!("knows {} {}", at.node, at.counter));
    let text = match row.state() {
        State::None => format!("nothing, {}", known()?),
        State::Requested => String::from("requested"),
        State::Releasing => String::from("releasing"),
        State::Replica if row.view.packed.is_dirty() => {
            format!("replica: {}, not all sent", seen(&row.value))
        }
        State::Replica => format!("replica: {}", seen(&row.value)),
        State::Main if row.view.holders.is_empty() => {
            format!("main copy {}: {}", row.view.packed.counter(), seen(&row.value))
        }
        State::Main => {
            let holders: Vec<String> = row.view.holders.iter().map(NodeId::to_string).collect();
            format!(
                "main copy {}: {}, held by {}",
                row.view.packed.counter(),
                seen(&row.value),
                holders.join(" ")
            )
        }
    };
    Some(format!("{node} {text}"))
}

fn parse_node(word: &str) -> Result<NodeId, Fault> {
    let number = word.strip_prefix('n').and_then(|number| number.parse().ok());
    number.map(NodeId).ok_or(Fault::Unreadable("a node such as n1"))
}

fn parse_worker(word: &str) -> Result<WorkerId, Fault> {
    let number = word.strip_prefix('w').and_then(|number| number.parse().ok());
    number.map(WorkerId).ok_or(Fault::Unreadable("a worker such as w0"))
}

fn parse_window(word: &str) -> Result<core::ops::Range<u64>, Fault> {
    let ends = word.split_once("..").and_then(|(start, end)| {
        let clock =
            |text: &str| text.strip_prefix('@').and_then(|number| number.parse::<u64>().ok());
        Some(clock(start)?..clock(end)?)
    });
    ends.ok_or(Fault::Unreadable("a window such as @0..@5"))
}
