//! Target `environment`: with any variables of a launcher, a process has a sensible place, or gets
//! one line on why it has none; a list of hosts expands to hosts, within its bound.
//!
//! The input sets some of the variables of launchers, to their usual values or to any text. Not
//! here: the machine's own variables.

use adapm_verify::arb::Choices;

use adapm_transport::group::Rendezvous;
use adapm_transport::group::launcher::{Environment, Flags, Placement, place};
use adapm_transport::testing::hosts_of;

/// Maximum number of variables in one input.
const VARIABLES_MAX: usize = 12;

/// Maximum number of hosts and of nodes.
const HOSTS_MAX: usize = 65_536;
const NODES_MAX: usize = 4_096;

/// Maximum bytes of all hosts in a list.
const HOST_BYTES_MAX: usize = 64 << 20;

/// Finds the place that `bytes` choose. Returns true if there is one, or a list of hosts.
pub fn environment(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    if choices.below(4) == 3 {
        return hosts(&text(&mut choices));
    }
    let mut variables: Vec<(&str, String)> = Vec::new();
    let family = choices.below(FAMILIES.len() as u64) as usize;
    // Half of the inputs begin with all variables of one launcher as it sets them.
    if choices.flag() {
        variables.extend(
            FAMILIES[family]
                .iter()
                .zip(USUALLY[family])
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
    }
    for _ in 0..VARIABLES_MAX {
        if choices.is_exhausted() {
            break;
        }
        let names = FAMILIES[if choices.below(8) == 7 {
            choices.below(FAMILIES.len() as u64) as usize
        } else {
            family
        }];
        let name = names[choices.below(names.len() as u64) as usize];
        let value = value(&mut choices);
        // A launcher's own value stays now and then, so that not all are spoiled.
        match variables.iter_mut().find(|(known, _)| *known == name) {
            Some(variable) if choices.below(4) == 3 => variable.1 = value,
            Some(_) => {}
            None => variables.push((name, value)),
        }
    }
    let mut flags = Flags::default();
    if choices.below(8) == 7 {
        flags.node = Some(choices.number() as usize);
        flags.nodes = choices.flag().then(|| choices.number() as usize);
        flags.rendezvous = choices.flag().then(|| text(&mut choices));
    }
    let variable = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    };
    match place(&flags, &Environment::new(&variable, Some("77-1234".to_owned()))) {
        Ok(Placement::Alone) => false,
        Ok(Placement::Among(position)) => {
            let (node, nodes) = (position.node.value, position.nodes.value);
            assert!(node < nodes && (2..=NODES_MAX).contains(&nodes), "node {node} of {nodes}");
            if let Rendezvous::Address(address) = &position.rendezvous.value {
                let (host, port) = address.rsplit_once(':').expect("an address has a port");
                assert!(
                    !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0),
                    "{address}"
                );
            }
            true
        }
        Err(error) => {
            let error = format!("{error}{}", error.with_flags());
            assert!(!error.contains(char::is_control), "an error is one line: {error:?}");
            false
        }
    }
}

fn hosts(list: &str) -> bool {
    let Some(hosts) = hosts_of(list) else { return false };
    assert!((1..=HOSTS_MAX).contains(&hosts.len()), "{list:?} has {} hosts", hosts.len());
    let bytes: usize = hosts.iter().map(String::len).sum();
    assert!(bytes <= HOST_BYTES_MAX, "the hosts of {list:?} take {bytes} bytes");
    let odd = hosts.iter().find(|host| host.is_empty() || host.contains([',', '[', ']']));
    assert_eq!(odd, None, "a host of {list:?}");
    true
}

/// Chooses a launcher's usual value, or any text.
fn value(choices: &mut Choices<'_>) -> String {
    match choices.below(8) {
        0..4 => choices.below(8).to_string(),
        4 => choices.number().to_string(),
        5 => USUAL[choices.below(USUAL.len() as u64) as usize].to_owned(),
        6 => "gpu[01-03,7],cpu1".to_owned(),
        _ => text(choices),
    }
}

/// Chooses any text, many of whose letters occur in lists and addresses.
fn text(choices: &mut Choices<'_>) -> String {
    let len = choices.below(64);
    (0..len)
        .map(|_| match choices.below(256) {
            letter @ 0..128 => char::from(letter as u8),
            letter => char::from(LETTERS[letter as usize % LETTERS.len()]),
        })
        .collect()
}

const LETTERS: &[u8] = b"0123456789[],-:.ab";

const USUAL: [&str; 8] =
    ["127.0.0.1:4157", "file:/tmp/x", "node-a", "[::1]:4157", "29500", "none", "4294967280", "a,b"];

/// The variables of each launcher.
const FAMILIES: [&[&str]; 6] = [
    &["ADAPM_NODE", "ADAPM_NODES", "ADAPM_RENDEZVOUS", "ADAPM_JOB"],
    &[
        "RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_RUN_ID",
    ],
    &[
        "SLURM_STEP_ID",
        "SLURM_STEPID",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_JOB_ID",
        "SLURM_STEP_NODELIST",
        "SLURM_JOB_NODELIST",
        "TMPDIR",
    ],
    &[
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMIX_NAMESPACE",
        "PMIX_RANK",
        "ADAPM_NODES",
        "ADAPM_RENDEZVOUS",
    ],
    &["PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_JOBID", "HYDI_CONTROL_FD"],
    &["JOB_COMPLETION_INDEX", "ADAPM_NODES", "ADAPM_RENDEZVOUS"],
];

/// The usual values of these variables, in the same order.
const USUALLY: [&[&str]; 6] = [
    &["1", "4", "10.0.0.1:4157", "run"],
    &["3", "4", "2", "node-a", "29500", "none"],
    &["2", "2", "3", "4", "4", "4711", "gpu[02-03]", "gpu[01-03,7],cpu1", "/tmp"],
    &["1", "4", "4", "2030698497", "1", "4", "10.0.0.1:4157"],
    &["1", "2", "2", "job", "7"],
    &["2", "3", "file:/tmp/x"],
];
