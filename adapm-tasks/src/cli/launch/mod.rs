//! The verb `launch`: one process a node, on this host or by ssh on others, and one ending for all
//! of them.
//!
//! [`Host`] is where to run the command, [`node`] is one process with the secret that all share,
//! [`relay`] what they print, [`supervise`] what is done when one ends, [`restarts`] whether all
//! are started again, [`error`] who was to blame and how that is reported.
//!
//! Not here: how the processes find each other, which is theirs to do, nor what a process does once
//! its launcher is gone (`crate::cli::launched`).

use std::ffi::{OsStr, OsString};
use std::net::Ipv6Addr;
use std::time::Duration;
use std::{env, io};

use crate::files;
use adapm_transport::group::launcher::{join_host, read_secret};
use adapm_transport::net::Token;
use adapm_transport::threads::SpawnError;
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use console::{Color, Style};

use crate::cli::args::{LaunchArgs, SettingsArgs};
use crate::cli::command;
use crate::cli::failure::Failure;
use crate::cli::files::check_shared;
use crate::cli::folder;
use crate::cli::interrupt::DEAD_AFTER;
use crate::cli::launch::error::LaunchError;
use crate::cli::launch::node::{Node, PrivateFolder, Secret, Start};
use crate::cli::launch::relay::Relays;
use crate::cli::launch::restarts::Restarts;
use crate::cli::launch::supervise::Watch;
use crate::cli::launched;
use crate::cli::terminal::{PREFIX, Stream};
use crate::cli::verbs::{Cli, Verb};

pub(crate) mod error;
mod node;
mod relay;
mod restarts;
mod supervise;

/// Starts the processes, passes on what they print and what is asked of them, and reports how they
/// ended.
pub(crate) fn run(args: &LaunchArgs) -> Result<(), Failure> {
    let hosts = read_hosts(&args.hosts)?;
    let nodes = args.nodes.unwrap_or(args.hosts.len());
    let inner = check(args, nodes)?;
    let secret = match &args.token_file {
        Some(path) => {
            // An input, which nothing written may replace.
            let _ = files::open(path);
            Secret::of(read_secret("--token-file", path)?)
        }
        None => Secret::fresh().map_err(system("random bytes"))?,
    };
    // Before the first process: its end must not be missed.
    let watch = Watch::install().map_err(Failure::Signals)?;
    let dead_after = inner.dead_after.or(args.dead_after).unwrap_or(DEAD_AFTER);
    let Inner { program, words, .. } = inner;
    let mut restarts =
        Restarts::of(args.restarts, &words)?.named().map_err(system("random bytes"))?;
    loop {
        // Each start has a meeting place of its own.
        let folder = PrivateFolder::new().map_err(LaunchError::Folder)?;
        let mut relays = Relays::new();
        let (program, hosts) = (program.as_ref(), &hosts);
        let (words, secret, folder, launch) = (&*words, &secret, &folder, restarts.launch());
        let plan = Plan { args, hosts, program, words, nodes, secret, folder, launch };
        let mut running = plan.start(&relays)?;
        let outcome = supervise::supervise(&mut running, &watch, dead_after, &relays);
        relays.finish();
        let ending = match (outcome.ending, outcome.interrupted) {
            // The reader of stdout has left: node 0 has seen that, and has asked all to stop.
            (Some(ending), None) if ending.is_stop() && relays.is_unread() => return Ok(()),
            (None, None) => return Ok(()),
            (Some(ending), None) if ending.is_stop() => {
                return Err(LaunchError::Ended(ending).into());
            }
            (Some(ending), None) => ending,
            (Some(ending), Some(_)) if !ending.is_stop() => {
                return Err(LaunchError::Ended(ending).into());
            }
            (_, Some(signal)) => return Err(Failure::Interrupted(128 + signal)),
        };
        let last = relays.last_line(ending.node());
        let Some(pause) = restarts.after(&ending, last) else {
            return Err(LaunchError::Ended(ending).into());
        };
        restarts.tell(&ending, pause);
        if let Some(signal) = watch.wait(pause) {
            return Err(Failure::Interrupted(128 + signal));
        }
    }
}

/// The plan that all processes of a run share.
struct Plan<'a> {
    args: &'a LaunchArgs,
    hosts: &'a [Host],
    /// Another program than this.
    program: Option<&'a OsString>,
    words: &'a [OsString],
    nodes: usize,
    secret: &'a Secret,
    folder: &'a PrivateFolder,
    /// The name of the launch, if it may start all again.
    launch: Option<&'a str>,
}

impl Plan<'_> {
    /// Starts all processes; if one cannot be started, those before it end.
    fn start(&self, relays: &Relays) -> Result<Vec<Node>, Failure> {
        let common = self.common_variables()?;
        let program = match self.program {
            Some(program) => program.clone(),
            None if self.hosts.is_empty() => {
                env::current_exe().map_err(system("the path of this program"))?.into_os_string()
            }
            None => self.args.remote_program.clone(),
        };
        let mut running = Vec::new();
        for number in 0..self.nodes {
            let host = self.hosts.get(number % self.hosts.len().max(1)).map(Host::destination);
            let mut variables = vec![("ADAPM_NODE", number.to_string().into())];
            variables.extend_from_slice(&common);
            if number == 0 && relays.has_screen() {
                variables.push((launched::SCREEN, "1".into()));
            }
            let start = Start {
                host: host.as_deref(),
                program: &program,
                words: self.words,
                variables,
                secret: self.secret,
            };
            let failed = |error| {
                let program = start.program();
                match SpawnError::of_process(&program.to_string_lossy(), &error) {
                    Some(refusal) => LaunchError::Refused { node: number, refusal },
                    None => LaunchError::Start { node: number, program, error },
                }
            };
            let mut node = Node::start(&start).map_err(failed)?;
            self.relay(number, &mut node, relays).map_err(system("a thread"))?;
            running.push(node);
        }
        Ok(running)
    }

    /// Returns the variables that are the same for all. They include an identity of the run, so
    /// that no process joins another run.
    fn common_variables(&self) -> Result<Vec<(&'static str, OsString)>, Failure> {
        let rendezvous = match self.hosts.first() {
            None => {
                let mut text = OsString::from("file:");
                text.push(self.folder.path().join("rendezvous"));
                text
            }
            Some(host) => host.meeting(self.args.port).into(),
        };
        let run = Token::fresh_text().map_err(system("random bytes"))?;
        // With `--json` tables go to stderr, each line after the name of the node.
        let before = if self.words.iter().any(|word| word == "--json") { PREFIX } else { 0 };
        let width = Stream::Stdout.width() - before;
        let mut variables = vec![
            ("ADAPM_NODES", self.nodes.to_string().into()),
            ("ADAPM_RENDEZVOUS", rendezvous),
            ("ADAPM_JOB", run[..16].into()),
            ("ADAPM_LAUNCHED", "1".into()),
            ("COLUMNS", width.to_string().into()),
        ];
        if self.hosts.is_empty() {
            // Sockets of nodes that are killed go with the launcher's folder.
            variables.push(("TMPDIR", self.folder.path().into()));
        }
        if let Some(launch) = self.launch {
            variables.push((folder::LAUNCH, launch.into()));
        }
        if let Some(transport) = self.args.transport {
            variables.push(("ADAPM_TRANSPORT", transport.scheme().into()));
        }
        if let Some(dead_after) = self.args.dead_after {
            variables.push(("ADAPM_DEAD_AFTER", dead_after.as_secs_f64().to_string().into()));
        }
        Ok(variables)
    }

    fn relay(&self, number: usize, node: &mut Node, relays: &Relays) -> io::Result<()> {
        let (stdout, stderr) = node.output();
        let prefix = self.prefix(number);
        if let Some(stdout) = stdout {
            match number {
                0 => relays.verbatim(stdout)?,
                _ => relays.prefixed(stdout, number, prefix.clone())?,
            }
        }
        stderr.map_or(Ok(()), |stderr| relays.prefixed(stderr, number, prefix))
    }

    /// `n2 | `, as wide for all nodes, with a colour of its own on a terminal.
    fn prefix(&self, number: usize) -> String {
        let width = self.nodes.saturating_sub(1).to_string().len() + 1;
        let name = format!("{:<width$} |", format!("n{number}"));
        let style = Style::new().fg(COLORS[number % COLORS.len()]).for_stderr();
        format!("{} ", style.apply_to(name))
    }
}

impl Start<'_> {
    /// Returns the program that would be run, for people.
    fn program(&self) -> OsString {
        if self.host.is_some() {
            env::var_os("ADAPM_SSH").unwrap_or_else(|| "ssh".into())
        } else {
            self.program.to_owned()
        }
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> LaunchError {
    move |error| LaunchError::System { what, error }
}

/// A command that each process runs.
#[derive(Debug)]
struct Inner {
    /// Another program, by its path; `None`: this one.
    program: Option<OsString>,
    /// The words after the name of the program.
    words: Vec<OsString>,
    /// Its own time after which a node counts as lost.
    dead_after: Option<Duration>,
}

/// Reads the command as the processes will, so that a slip is reported once and at once.
fn check(args: &LaunchArgs, nodes: usize) -> Result<Inner, Failure> {
    let mut words = args.command.clone();
    // As shells tell a path from a name.
    let is_path = |word: &OsString| word.to_string_lossy().contains('/');
    if words.first().is_some_and(is_path) {
        let program = Some(words.remove(0));
        return Ok(Inner { program, words, dead_after: None });
    }
    if words.first().is_some_and(|word| word == OsStr::new("adapm")) {
        words.remove(0);
    }
    let line = [OsString::from("adapm")].into_iter().chain(words.iter().cloned());
    let (cli, _) = Cli::read(line.collect()).map_err(|failure| match (failure, words.first()) {
        (Failure::Usage { error, .. }, Some(word))
            if error.kind() == ErrorKind::InvalidSubcommand && !is_verb(word) =>
        {
            LaunchError::Verb(word.to_string_lossy().into_owned()).into()
        }
        (Failure::Usage { error, .. }, Some(verb))
            if is_verb(verb) && error.kind() != ErrorKind::DisplayHelp && !has_task(&words) =>
        {
            let text = |word: &OsString| word.to_string_lossy().into_owned();
            LaunchError::Task { verb: text(verb), word: words.get(1).map(text) }.into()
        }
        (failure, _) => failure,
    })?;
    let verb = cli.verb.as_ref();
    let (processes, own_nodes) = match (verb, verb.and_then(command::of)) {
        (_, Some(command)) => {
            if command.settings().is_some_and(SettingsArgs::only_print) {
                return Err(LaunchError::List.into());
            }
            command.check()?;
            check_shared(&command.files())?;
            command.processes()
        }
        (Some(Verb::CheckNet(args)), None) => (&args.processes, args.nodes),
        _ => {
            let verb = words.first().map(|word| word.to_string_lossy().into_owned());
            return Err(LaunchError::Verb(verb.unwrap_or_default()).into());
        }
    };
    if processes.node.is_some() || processes.rendezvous.is_some() {
        return Err(LaunchError::Placed.into());
    }
    if let Some(own) = own_nodes.filter(|own| *own != nodes) {
        return Err(LaunchError::OtherNodes { own, nodes }.into());
    }
    Ok(Inner { program: None, words, dead_after: processes.dead_after })
}

/// Returns true for a verb that takes the word of a task after it.
fn is_verb(word: &OsString) -> bool {
    ["train", "eval"].iter().any(|verb| word == verb)
}

/// Returns true if a task of this program is the second word.
fn has_task(words: &[OsString]) -> bool {
    let command = Cli::command();
    let verb = words.first().and_then(|verb| command.find_subcommand(verb));
    verb.zip(words.get(1)).is_some_and(|(verb, task)| verb.find_subcommand(task).is_some())
}

/// One host, as it was given: `HOST`, `USER@HOST`, or with an IPv6 address, with or without
/// brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    user: Option<String>,
    /// Without brackets.
    name: String,
}

/// Reads the hosts. The others meet at the first, so its name must mean the same to all.
///
/// # Errors
/// Names that ssh would take for flags, that are none, or that mean another host on each host.
pub(super) fn read_hosts(hosts: &[String]) -> Result<Vec<Host>, LaunchError> {
    let read: Vec<Host> = hosts.iter().map(|host| Host::read(host)).collect::<Result<_, _>>()?;
    if let (Some(first), Some(given)) = (read.first(), hosts.first()) {
        if first.name.contains('%') {
            return Err(LaunchError::Zone(given.clone()));
        }
        if first.is_local() && !read.iter().all(Host::is_local) {
            return Err(LaunchError::LoopbackHost(given.clone()));
        }
    }
    Ok(read)
}

impl Host {
    fn read(text: &str) -> Result<Self, LaunchError> {
        let (user, name) = match text.rsplit_once('@') {
            Some((user, name)) => (Some(user.to_owned()), name),
            None => (None, text),
        };
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '[' | ']');
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_address =
            |name: &str| name.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
        if bare.is_empty() || text.starts_with('-') || bare.contains(odd) {
            return Err(LaunchError::Host(text.to_owned()));
        }
        if (bare.contains(':') || bare != name) && !is_address(bare) {
            return Err(LaunchError::HostColon(text.to_owned()));
        }
        Ok(Self { user, name: bare.to_owned() })
    }

    /// Returns the destination as ssh takes it: addresses without brackets.
    pub(super) fn destination(&self) -> String {
        self.user.as_ref().map_or_else(|| self.name.clone(), |user| format!("{user}@{}", self.name))
    }

    /// Returns the rendezvous at `port` of this host.
    pub(super) fn meeting(&self, port: u16) -> String {
        join_host(&self.name, port)
    }

    fn is_local(&self) -> bool {
        matches!(self.name.as_str(), "localhost" | "127.0.0.1" | "::1")
    }
}

/// Told apart on light and dark terminals; red is for errors.
const COLORS: [Color; 5] = [Color::Cyan, Color::Green, Color::Magenta, Color::Yellow, Color::Blue];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(host: &str) -> (String, String) {
        let host = Host::read(host).expect("a host");
        (host.destination(), host.meeting(4157))
    }

    #[test]
    fn addresses_have_brackets_where_a_port_follows_and_nowhere_else() {
        let pair = |ssh: &str, meeting: &str| (ssh.to_owned(), meeting.to_owned());
        assert_eq!(told("ann"), pair("ann", "ann:4157"));
        assert_eq!(told("me@ann"), pair("me@ann", "ann:4157"));
        assert_eq!(told("10.0.0.1"), pair("10.0.0.1", "10.0.0.1:4157"));
        for given in ["fd88::1", "[fd88::1]"] {
            assert_eq!(told(given), pair("fd88::1", "[fd88::1]:4157"));
            assert_eq!(told(&format!("me@{given}")), pair("me@fd88::1", "[fd88::1]:4157"));
        }
        // Beyond the first host an address of one link will do.
        assert_eq!(told("fe80::1%eth0").0, "fe80::1%eth0");
    }

    #[test]
    fn what_is_no_host_is_told_with_what_to_give() {
        let text = |hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            read_hosts(&hosts).expect_err("no host").to_string()
        };
        for odd in ["", "-oProxyCommand=x", "a b", "me@", "[]", "a/b"] {
            assert!(
                text(&[odd, "bob"]).contains("no name of a host"),
                "{odd}: {}",
                text(&[odd, "bob"])
            );
        }
        assert!(text(&["ann:22"]).contains("[fd00::1]"), "{}", text(&["ann:22"]));
        assert!(text(&["[ann]"]).contains("[fd00::1]"));
        assert!(
            text(&["fe80::1%eth0", "bob"]).contains("zone"),
            "{}",
            text(&["fe80::1%eth0", "bob"])
        );
        assert!(
            text(&["[::1]", "bob"]).contains("the name by which the other hosts reach the first")
        );
        assert!(
            read_hosts(&["[::1]".to_owned(), "localhost".to_owned()]).is_ok(),
            "one host, twice"
        );
    }
}
