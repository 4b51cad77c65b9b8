//! Nodes as processes on loopback: started by `launch`, by hand, and as launchers of clusters start
//! them.
#![cfg(unix)]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{adapm, assert_refused, finish, folder, run, text};
use crate::together::{holds, launch, objects, together};

#[test]
fn a_node_that_does_not_come_is_named() {
    let folder = folder("nodes_missing");
    let meeting = format!("file:{}", text(&folder.join("rendezvous")));
    let flags = ["--node", "0", "--nodes", "3", "--rendezvous", &meeting, "--join-timeout", "1"];
    let ran = run(&[["check-net"].as_slice(), &flags].concat());
    assert_eq!(ran.code, Some(75), "{ran:?}");
    for words in [
        "  n1   missing\n",
        "1 of 3 nodes joined",
        "node from --node, count from --nodes, meeting from --rendezvous",
    ] {
        holds(&ran.stderr, words);
    }
    let last = ran.stderr.lines().last().expect("a line");
    assert!(last.starts_with("error: 1 of 3 nodes joined within 1 s; missing: n1, n2"), "{last}");
    assert!(ran.stdout.is_empty(), "{ran:?}");
}

#[test]
fn a_secret_is_made_once_for_its_owner_alone_and_opens_a_cluster() {
    let folder = folder("nodes_token");
    let (file, meeting) = (folder.join("adapm.token"), folder.join("rendezvous"));
    let made = run(&["token", text(&file)]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let secret = fs::read_to_string(&file).expect("it is there");
    assert!(secret.trim().len() == 64 && !made.stdout.contains(secret.trim()), "{made:?}");
    holds(&made.stdout, &format!("--token-file {}", text(&file)));
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_refused(&run(&["token", text(&file)]), &["is there already", text(&file)]);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), secret, "one that is in use stays");
    assert_refused(
        &run(&["token", text(&folder.join("none/token"))]),
        &["none/token", "no such file"],
    );
    assert_refused(&run(&["token"]), &["<FILE>"]);

    let node = |number: &str| {
        let meeting = format!("file:{}", text(&meeting));
        let place = ["--node", number, "--nodes", "2", "--rendezvous", &meeting];
        adapm(
            &[["check-net", "--seconds", "0.05", "--token-file", text(&file)].as_slice(), &place]
                .concat(),
        )
    };
    let ran = together(vec![node("0"), node("1")]);
    assert!(ran.iter().all(|ran| ran.code == Some(0)), "{ran:?}");
}

#[test]
fn a_secret_that_can_be_guessed_is_refused_before_anybody_is_sought() {
    let flags = ["check-net", "--node", "1", "--nodes", "2", "--rendezvous", "127.0.0.1:9"];
    for (secret, words) in
        [("a".repeat(64), "made of 1 different characters"), ("short".into(), "has 5 bytes")]
    {
        let ran = finish(adapm(&flags).env("ADAPM_TOKEN", secret).spawn().expect("it starts"));
        assert_refused(&ran, &["ADAPM_TOKEN", words, "`adapm token FILE`"]);
    }
}

#[test]
fn nodes_with_different_secrets_say_so_on_both_sides() {
    let folder = folder("nodes_secrets");
    let meeting = format!("file:{}", text(&folder.join("rendezvous")));
    let node = |number: &str, secret: &str, wait: &str| {
        let flags =
            ["--node", number, "--nodes", "2", "--rendezvous", &meeting, "--join-timeout", wait];
        let mut command = adapm(&[["check-net"].as_slice(), &flags].concat());
        command.env("ADAPM_TOKEN", format!("0123456789abcdef0123456789abcde{secret}"));
        command
    };
    // Node 0 stays until node 1 has given up: a node that is gone refuses for another reason.
    let ran = together(vec![node("0", "a", "6"), node("1", "b", "2")]);
    for ran in &ran {
        assert!(ran.stdout.is_empty(), "{ran:?}");
        holds(&ran.stderr, "token");
    }
    // Neither trusts the other's refusal, as any host between them could forge one and end a run:
    // both wait for one that knows the secret.
    assert_eq!([ran[0].code, ran[1].code], [Some(75), Some(75)], "{ran:?}");
    holds(
        &ran[1].stderr,
        "node n0 was not reached so far: the tokens differ: give all nodes the same token",
    );
    holds(&ran[1].stderr, "within 2 s: the tokens differ: give all nodes the same token");
}

#[test]
fn half_of_a_place_is_refused_with_the_name_of_the_variable() {
    for (name, value, words) in [
        ("ADAPM_NODE", "0", "ADAPM_NODE is given, but not how many nodes there are"),
        ("ADAPM_NODES", "2", "ADAPM_NODES is given, but not which node this is"),
        ("RANK", "0", "RANK is set but WORLD_SIZE is not"),
        (
            "OMPI_COMM_WORLD_SIZE",
            "2",
            "OMPI_COMM_WORLD_SIZE is set but OMPI_COMM_WORLD_RANK is not",
        ),
        ("SLURM_STEP_ID", "0", "SLURM_STEP_ID is set but SLURM_PROCID is not"),
    ] {
        let ran = finish(adapm(&["train", "kge"]).env(name, value).spawn().expect("it starts"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(
            ran.stderr.starts_with(&format!("error: {words}")) && ran.stderr.lines().count() == 1,
            "{ran:?}"
        );
    }
}

/// Two processes with the variables of a launcher; `{}` stands for the node's number.
fn as_launched_by(name: &str, variables: &[(&str, &str)], words: &str) {
    let folder = folder(&format!("nodes_{name}"));
    let node = |number: &str| {
        let mut command = adapm(&["check-net", "--seconds", "0.05", "--json"]);
        command.env("TMPDIR", &folder);
        command.envs(variables.iter().map(|(name, value)| (name, value.replace("{}", number))));
        command
    };
    let ran = together(vec![node("0"), node("1")]);
    for ran in &ran {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        holds(&ran.stderr, words);
    }
    assert_eq!(objects(&ran[0]).last().expect("an object")["nodes"], 2, "{ran:?}");
    assert_eq!(ran[1].stdout, "", "{ran:?}");
    let left = fs::read_dir(&folder).expect("it is there").filter_map(Result::ok);
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?} are left");
}

#[test]
fn nodes_find_each_other_as_mpirun_starts_them() {
    let open_mpi = [
        ("OMPI_COMM_WORLD_RANK", "{}"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ("PMIX_NAMESPACE", "2030698497"),
    ];
    as_launched_by(
        "open_mpi",
        &open_mpi,
        "Open MPI: node from OMPI_COMM_WORLD_RANK, count from OMPI_COMM_WORLD_SIZE",
    );
    // Hydra names no job; the processes have a parent in common, here this test.
    let hydra = [("PMI_RANK", "{}"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")];
    as_launched_by("hydra", &hydra, "PMI: node from PMI_RANK, count from PMI_SIZE");
}

#[test]
fn nodes_find_each_other_as_srun_starts_them() {
    let slurm = [
        ("SLURM_JOB_ID", "4711"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_PROCID", "{}"),
        ("SLURM_NTASKS", "2"),
        ("SLURM_STEP_NODELIST", "n7"),
    ];
    as_launched_by("slurm", &slurm, "Slurm: node from SLURM_PROCID, count from SLURM_NTASKS");
}

#[test]
fn nodes_find_each_other_as_torchrun_starts_them() {
    // A port that was free a moment ago: that of torchrun's own store is the one before it.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .expect("a free port")
        .port();
    let store = (port - 1).to_string();
    let torchrun = [
        ("RANK", "{}"),
        ("WORLD_SIZE", "2"),
        ("LOCAL_WORLD_SIZE", "2"),
        ("MASTER_ADDR", "here"),
        ("MASTER_PORT", store.as_str()),
    ];
    as_launched_by(
        "torchrun",
        &torchrun,
        "torchrun: node from RANK, count from WORLD_SIZE, meeting from MASTER_ADDR",
    );
}

#[test]
fn nodes_find_each_other_as_kubernetes_starts_them() {
    let folder = folder("nodes_kubernetes_meeting");
    let meeting = format!("file:{}", text(&folder.join("rendezvous")));
    let pods = [
        ("JOB_COMPLETION_INDEX", "{}"),
        ("ADAPM_NODES", "2"),
        ("ADAPM_RENDEZVOUS", meeting.as_str()),
    ];
    as_launched_by(
        "kubernetes",
        &pods,
        "Kubernetes: node from JOB_COMPLETION_INDEX, count from ADAPM_NODES",
    );
}

#[test]
fn check_net_measures_every_pair() {
    let ran = run(&launch(&["--nodes", "3"], &["check-net", "--seconds", "0.3", "--json"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let object = objects(&ran).pop().expect("an object");
    let pairs = object["pairs"].as_array().expect("a list");
    assert_eq!(pairs.len(), 6, "{object}");
    for pair in pairs {
        for field in ["rtt_median_seconds", "rtt_p99_seconds", "bytes_per_second"] {
            assert!(pair[field].as_f64() > Some(0.0), "{field} in {pair}");
        }
    }
    holds(&ran.stderr, "n0 | round trip, median");
    let alone = run(&["check-net"]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
    holds(&alone.stderr, "adapm launch --nodes 2 -- check-net");
}
