//! Environments of launchers, and broken ones, each with the resulting place.

use super::*;
use crate::group::config::Rendezvous;

/// Returns `2 of 4 at HOST:PORT [node, nodes, rendezvous]`, `alone`, or the error.
fn told(flags: &Flags, variables: &str) -> String {
    let variable = |name: &str| {
        let mut pairs = variables.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    match place(flags, &Environment::new(&variable, Some("77-1234".to_owned()))) {
        Ok(Placement::Alone) => "alone".to_owned(),
        Ok(Placement::Among(member)) => {
            let Position { node, nodes, rendezvous, job, launcher } = member;
            let place = match rendezvous.value {
                Rendezvous::Address(address) => address,
                Rendezvous::File(path) | Rendezvous::JobFile(path) => path.display().to_string(),
            };
            let origins = [node.origin, nodes.origin, rendezvous.origin].join(", ");
            let by = launcher.map_or_else(String::new, |launcher| format!(" by {launcher}"));
            let job = job.map_or_else(String::new, |job| format!(" job {job}"));
            format!("{} of {} at {place} [{origins}]{by}{job}", node.value, nodes.value)
        }
        Err(error) => {
            let text = error.with_flags().to_string();
            assert!(!text.contains('\n'), "{text}");
            text
        }
    }
}

#[track_caller]
fn table(rows: &[(&str, &str)]) {
    for (variables, expected) in rows {
        assert_eq!(told(&Flags::default(), variables), *expected, "{variables}");
    }
}

/// Checks that the answer begins with `words`, which name the flag or variable.
#[track_caller]
fn refused(flags: &Flags, variables: &str, words: &str) {
    let answer = told(flags, variables);
    assert!(answer.starts_with(words), "{variables}: {answer}");
}

fn flags(node: Option<usize>, nodes: Option<usize>, rendezvous: Option<&str>) -> Flags {
    Flags { node, nodes, rendezvous: rendezvous.map(str::to_owned), ..Flags::default() }
}

const SRUN: &str = "SLURM_JOB_ID=4711 SLURM_STEP_ID=2 SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 \
                    SLURM_JOB_NODELIST=gpu[01-03,7],cpu1 SLURM_STEP_NODELIST=gpu[02-03]";
const OPEN_MPI: &str = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_RANK=1 \
                        PMIX_NAMESPACE=2030698497 OMPI_MCA_ess_base_jobid=2030698497";
const HYDRA: &str =
    "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2 MPI_LOCALRANKID=1 HYDI_CONTROL_FD=7 PMI_FD=8";
const TORCHRUN: &str =
    "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=node-a MASTER_PORT=29500";

#[test]
fn a_process_that_nobody_launched_is_alone() {
    table(&[
        ("", "alone"),
        ("PATH=/bin TMPDIR=/x", "alone"),
        ("ADAPM_NODE= ADAPM_NODES=", "alone"),
    ]);
    assert_eq!(told(&flags(None, Some(4), None), ""), "alone", "nodes of this process");
}

#[test]
fn own_variables_place_a_process() {
    table(&[
        (
            "ADAPM_NODE=2 ADAPM_NODES=4 ADAPM_RENDEZVOUS=a:4157",
            "2 of 4 at a:4157 [ADAPM_NODE, ADAPM_NODES, ADAPM_RENDEZVOUS]",
        ),
        (
            "ADAPM_NODE=0 ADAPM_NODES=2 ADAPM_RENDEZVOUS=file:/x/y",
            "0 of 2 at /x/y [ADAPM_NODE, ADAPM_NODES, ADAPM_RENDEZVOUS]",
        ),
        (
            "ADAPM_NODE=0 ADAPM_NODES=2 ADAPM_RENDEZVOUS=[::1]:9",
            "0 of 2 at [::1]:9 [ADAPM_NODE, ADAPM_NODES, ADAPM_RENDEZVOUS]",
        ),
        ("ADAPM_NODE=0 ADAPM_NODES=1 ADAPM_RENDEZVOUS=a:4157", "alone"),
        (
            "ADAPM_NODE=0 ADAPM_NODES=2 ADAPM_RENDEZVOUS=a:4157 ADAPM_JOB=x7",
            "0 of 2 at a:4157 [ADAPM_NODE, ADAPM_NODES, ADAPM_RENDEZVOUS] job x7",
        ),
    ]);
}

#[test]
fn flags_win_value_by_value() {
    let own = "ADAPM_NODE=2 ADAPM_NODES=4 ADAPM_RENDEZVOUS=a:4157";
    for (asked, variables, expected) in [
        (
            flags(Some(1), None, None),
            own,
            "1 of 4 at a:4157 [--node, ADAPM_NODES, ADAPM_RENDEZVOUS]",
        ),
        (
            flags(None, Some(3), None),
            own,
            "2 of 3 at a:4157 [ADAPM_NODE, --nodes, ADAPM_RENDEZVOUS]",
        ),
        (
            flags(None, None, Some("b:1")),
            own,
            "2 of 4 at b:1 [ADAPM_NODE, ADAPM_NODES, --rendezvous]",
        ),
        (flags(Some(0), Some(2), Some("b:1")), "", "0 of 2 at b:1 [--node, --nodes, --rendezvous]"),
        // Complete settings hide a broken launcher.
        (
            flags(Some(0), Some(2), Some("b:1")),
            "RANK=x SLURM_STEP_ID=y",
            "0 of 2 at b:1 [--node, --nodes, --rendezvous]",
        ),
        (
            flags(None, None, Some("h0:4157")),
            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=9",
            "1 of 4 at h0:4157 [OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, --rendezvous] by Open MPI job 9",
        ),
        (
            flags(None, Some(4), None),
            SRUN,
            "3 of 4 at gpu02:11879 [SLURM_PROCID, --nodes, SLURM_STEP_NODELIST] by Slurm job 4711.2",
        ),
        (flags(None, Some(1), None), SRUN, "alone"),
        (
            flags(None, Some(4), None),
            "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1",
            "alone",
        ),
        (
            flags(Some(1), Some(2), Some("b:1")),
            "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1",
            "1 of 2 at b:1 [--node, --nodes, --rendezvous]",
        ),
    ] {
        assert_eq!(told(&asked, variables), expected, "{asked:?} {variables}");
    }
}

#[test]
fn torchrun_leaves_its_port_to_its_store() {
    table(&[
        (
            TORCHRUN,
            "1 of 4 at node-a:29501 [RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT + 1] by torchrun",
        ),
        (
            "RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=node-a MASTER_PORT=1 TORCHELASTIC_RUN_ID=none",
            "1 of 2 at 127.0.0.1:2 [RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT + 1] by torchrun",
        ),
        (
            "RANK=0 WORLD_SIZE=2 MASTER_ADDR=fd00::2 MASTER_PORT=1 TORCHELASTIC_RUN_ID=r7",
            "0 of 2 at [fd00::2]:2 [RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT + 1] by torchrun job r7",
        ),
        ("RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=29500", "alone"),
        ("WORLD_SIZE=1 MASTER_ADDR=a", "alone"),
    ]);
    for (variables, words) in [
        ("RANK=0", "RANK is set but WORLD_SIZE is not: torchrun sets both"),
        ("WORLD_SIZE=4 MASTER_ADDR=a MASTER_PORT=1", "WORLD_SIZE is set but RANK is not"),
        ("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", "MASTER_ADDR is set but MASTER_PORT is not"),
        ("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=65535", "MASTER_PORT is '65535'"),
        ("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=0", "MASTER_PORT is '0'"),
        ("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=http", "MASTER_PORT is 'http'"),
        ("RANK=0 WORLD_SIZE=2", "WORLD_SIZE makes this one of 2 nodes, but does not say where"),
    ] {
        refused(&Flags::default(), variables, words);
    }
}

#[test]
fn slurm_steps_meet_on_their_first_host_or_through_a_file() {
    table(&[
        (
            SRUN,
            "3 of 4 at gpu02:11879 [SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST] by Slurm job 4711.2",
        ),
        (
            "SLURM_JOBID=4711 SLURM_STEPID=0 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_NODELIST=gpu[01-03,7]",
            "0 of 4 at gpu01:16041 [SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_NODELIST] by Slurm job 4711.0",
        ),
        (
            "SLURM_JOB_ID=5 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NODELIST=n7 TMPDIR=/scratch",
            "1 of 2 at /scratch/adapm-slurm-5.0/rendezvous [SLURM_PROCID, SLURM_NTASKS, SLURM_STEP_NODELIST] by Slurm job 5.0",
        ),
        ("SLURM_JOB_ID=5 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1", "alone"),
    ]);
}

#[test]
fn an_allocation_without_srun_waits_for_nobody() {
    table(&[
        ("SLURM_JOB_ID=5 SLURM_NTASKS=8 SLURM_JOB_NODELIST=n[1-2]", "alone"),
        (
            "SLURM_JOB_ID=5 SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_NODEID=0 SLURM_JOB_NODELIST=n[1-2]",
            "alone",
        ),
        (
            "SLURM_JOB_ID=5 SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=8",
            "alone",
        ),
        ("SLURM_JOB_ID=5 SLURM_STEP_ID=4294967291 SLURM_PROCID=0 SLURM_NTASKS=8", "alone"),
    ]);
}

#[test]
fn half_of_slurm_names_the_other_half() {
    for (variables, words) in [
        (
            "SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_JOB_ID=5",
            "SLURM_STEP_ID is set but SLURM_PROCID is not: Slurm",
        ),
        (
            "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_JOB_ID=5",
            "SLURM_PROCID is set but SLURM_NTASKS is not",
        ),
        (
            "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2",
            "SLURM_PROCID is set but SLURM_JOB_ID is not",
        ),
        (
            "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=5",
            "SLURM_NTASKS makes this one of 2 nodes, but does not say where they meet: give --rendezvous",
        ),
        (
            "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=5 SLURM_JOB_NODELIST=n[1-",
            "SLURM_JOB_NODELIST is 'n[1-', no list of hosts",
        ),
        (
            "SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_NTASKS=2 SLURM_JOB_ID=5 SLURM_NODELIST=n1",
            "SLURM_PROCID is 2, but SLURM_NTASKS is 2",
        ),
    ] {
        refused(&Flags::default(), variables, words);
    }
}

#[test]
fn ranks_of_mpi_on_one_host_meet_through_a_file() {
    let open_mpi = "1 of 4 at /tmp/adapm-mpi-2030698497/rendezvous \
                    [OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_SIZE] by Open MPI job 2030698497";
    table(&[
        (OPEN_MPI, open_mpi),
        (
            HYDRA,
            "1 of 2 at /tmp/adapm-mpi-77-1234/rendezvous [PMI_RANK, PMI_SIZE, MPI_LOCALNRANKS] by PMI job 77-1234",
        ),
        (
            "MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_LOCAL_SIZE=2 PMI_JOBID=kvs_1/2",
            "0 of 2 at /tmp/adapm-mpi-kvs_1_2/rendezvous \
             [MV2_COMM_WORLD_RANK, MV2_COMM_WORLD_SIZE, MV2_COMM_WORLD_LOCAL_SIZE] by MVAPICH job kvs_1/2",
        ),
        ("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_SIZE=1", "alone"),
        ("PMI_RANK=0 PMI_SIZE=1", "alone"),
        // Children of `mpirun` in a Slurm job inherit the variables of Slurm's step for its
        // daemons.
        (
            &format!("SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2 {OPEN_MPI}"),
            open_mpi,
        ),
        // `srun --mpi=pmi2` counts as Slurm, which knows the hosts.
        (
            &format!("{SRUN} PMI_RANK=3 PMI_SIZE=4 PMI_JOBID=4711.2"),
            "3 of 4 at gpu02:11879 [SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST] by Slurm job 4711.2",
        ),
    ]);
}

#[test]
fn ranks_of_mpi_on_several_hosts_must_be_told_where_to_meet() {
    for (variables, words) in [
        (
            "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=1",
            "OMPI_COMM_WORLD_SIZE makes this one of 4 nodes, but does not say where they meet: give --rendezvous HOST:PORT",
        ),
        ("PMI_RANK=0 PMI_SIZE=4 MPI_LOCALNRANKS=2", "PMI_SIZE makes this one of 4 nodes"),
        (
            "OMPI_COMM_WORLD_RANK=0",
            "OMPI_COMM_WORLD_RANK is set but OMPI_COMM_WORLD_SIZE is not: Open MPI",
        ),
        ("OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_SIZE is set but OMPI_COMM_WORLD_RANK is not"),
        ("PMI_RANK=1", "PMI_RANK is set but PMI_SIZE is not: PMI"),
        (
            "PMIX_RANK=1 PMIX_NAMESPACE=prterun-a-1@1",
            "PMIX_RANK is given, but not how many nodes there are: give --nodes",
        ),
    ] {
        refused(&Flags::default(), variables, words);
    }
    let pmix = told(&flags(None, Some(2), Some("a:1")), "PMIX_RANK=1 PMIX_NAMESPACE=x@1");
    assert_eq!(pmix, "1 of 2 at a:1 [PMIX_RANK, --nodes, --rendezvous] by PMIx job x@1");
}

#[test]
fn a_pod_is_one_of_several_only_if_it_is_told_of_how_many() {
    table(&[
        ("JOB_COMPLETION_INDEX=3", "alone"),
        (
            "JOB_COMPLETION_INDEX=3 ADAPM_NODES=4 ADAPM_RENDEZVOUS=kge-0.kge:4157",
            "3 of 4 at kge-0.kge:4157 [JOB_COMPLETION_INDEX, ADAPM_NODES, ADAPM_RENDEZVOUS] by Kubernetes",
        ),
    ]);
    assert_eq!(
        told(&flags(None, Some(4), None), "JOB_COMPLETION_INDEX=3"),
        "alone",
        "four nodes in each pod"
    );
    refused(
        &Flags::default(),
        "JOB_COMPLETION_INDEX=3 ADAPM_NODES=4",
        "ADAPM_NODES makes this one of 4 nodes, but does not say where they meet: give --rendezvous",
    );
    refused(
        &Flags::default(),
        "JOB_COMPLETION_INDEX=0 ADAPM_RENDEZVOUS=a:1",
        "ADAPM_RENDEZVOUS is given, but not how many",
    );
}

#[test]
fn of_two_launchers_the_first_counts() {
    table(&[
        (
            &format!("{OPEN_MPI} {TORCHRUN}"),
            "1 of 4 at node-a:29501 [RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT + 1] by torchrun",
        ),
        (
            &format!("JOB_COMPLETION_INDEX=9 {SRUN}"),
            "3 of 4 at gpu02:11879 [SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST] by Slurm job 4711.2",
        ),
        // Values are not mixed with those of a later launcher.
        (
            &format!("ADAPM_NODE=0 ADAPM_RENDEZVOUS=a:1 {SRUN}"),
            "0 of 4 at a:1 [ADAPM_NODE, SLURM_STEP_NUM_TASKS, ADAPM_RENDEZVOUS]",
        ),
    ]);
}

#[test]
fn without_flags_a_message_advises_variables() {
    let told = |variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        place(&Flags::default(), &Environment::new(&variable, None)).expect_err("half").to_string()
    };
    for (variables, expected) in [
        (
            &[("ADAPM_NODES", "2")][..],
            "ADAPM_NODES is given, but not which node this is: set ADAPM_NODE",
        ),
        (
            &[("ADAPM_NODE", "0")],
            "ADAPM_NODE is given, but not how many nodes there are: set ADAPM_NODES",
        ),
        (
            &[("PMI_RANK", "0"), ("PMI_SIZE", "2")],
            "PMI_SIZE makes this one of 2 nodes, but does not say where they meet: set ADAPM_RENDEZVOUS \
             to HOST:PORT with the host of node 0, the same on all",
        ),
        (
            &[("RANK", "0")],
            "RANK is set but WORLD_SIZE is not: torchrun sets both; unset RANK, or set ADAPM_NODE, \
             ADAPM_NODES and ADAPM_RENDEZVOUS",
        ),
    ] {
        assert_eq!(told(variables), expected);
    }
}

#[test]
fn a_position_has_the_settings_of_its_group() {
    let settings = |transport: &'static str, dead_after: &'static str| {
        let variable = |name: &str| {
            let value = match name {
                "ADAPM_NODE" | "ADAPM_JOB" => "1",
                "ADAPM_NODES" => "3",
                "ADAPM_RENDEZVOUS" => "a:4157",
                "ADAPM_TRANSPORT" => transport,
                "ADAPM_DEAD_AFTER" => dead_after,
                _ => return None,
            };
            Some(value.to_owned())
        };
        let (flags, environment) = (Flags::default(), Environment::new(&variable, None));
        let Ok(Placement::Among(position)) = place(&flags, &environment) else {
            panic!("three nodes")
        };
        position.config(&flags, &environment).map_err(|error| error.to_string())
    };
    let config = settings("unix", "2.5").expect("all is well");
    assert_eq!((config.node.index(), config.nodes), (1, 3));
    assert_eq!(config.rendezvous, Rendezvous::Address("a:4157".to_owned()));
    assert_eq!((config.kind.scheme(), config.dead_after.as_millis()), ("unix", 2_500));
    assert_eq!(config.cluster.0, 0xaf63_ac4c_8601_9afc, "the digest of the job's name");
    let error = settings("pigeon", "").expect_err("no transport");
    assert!(error.starts_with("ADAPM_TRANSPORT is 'pigeon': give one of tcp, "), "{error}");
    let error = settings("tcp", "soon").expect_err("no time");
    assert_eq!(error, "ADAPM_DEAD_AFTER is 'soon': give seconds, from 0.001 to 86400");
}

#[test]
fn what_variables_hold_stays_in_one_line() {
    let variable = |name: &str| (name == "PMI_RANK").then(|| "1\n\u{1b}[2J".to_owned());
    let error =
        place(&Flags::default(), &Environment::new(&variable, None)).expect_err("no number");
    assert_eq!(error.to_string(), "PMI_RANK is '1\\n\\u{1b}[2J': give a whole number, or unset it");
}

#[test]
fn half_of_what_is_needed_and_numbers_that_are_none_are_refused() {
    for (variables, words) in [
        (
            "ADAPM_NODE=0",
            "ADAPM_NODE is given, but not how many nodes there are: give --nodes or set ADAPM_NODES",
        ),
        ("ADAPM_NODES=4", "ADAPM_NODES is given, but not which node this is: give --node"),
        (
            "ADAPM_RENDEZVOUS=a:1 ADAPM_NODES=2",
            "ADAPM_RENDEZVOUS is given, but not which node this is",
        ),
        (
            "ADAPM_NODE=0 ADAPM_NODES=2",
            "ADAPM_NODE makes this one of 2 nodes, but does not say where they meet",
        ),
        ("ADAPM_NODE=two ADAPM_NODES=4", "ADAPM_NODE is 'two': give a whole number"),
        ("ADAPM_NODE=-1 ADAPM_NODES=4", "ADAPM_NODE is '-1'"),
        ("ADAPM_NODES=4.0", "ADAPM_NODES is '4.0'"),
        (
            "ADAPM_NODE=4 ADAPM_NODES=4 ADAPM_RENDEZVOUS=a:1",
            "ADAPM_NODE is 4, but ADAPM_NODES is 4: nodes count from 0 to 3",
        ),
        (
            "ADAPM_NODE=0 ADAPM_NODES=0 ADAPM_RENDEZVOUS=a:1",
            "ADAPM_NODES is 0: a cluster has 1 to 4096 nodes",
        ),
        ("ADAPM_NODE=0 ADAPM_NODES=4097 ADAPM_RENDEZVOUS=a:1", "ADAPM_NODES is 4097"),
        ("RANK=one WORLD_SIZE=2", "RANK is 'one'"),
        ("SLURM_STEP_ID=x", "SLURM_STEP_ID is 'x'"),
        ("JOB_COMPLETION_INDEX=99999999999999999999999", "JOB_COMPLETION_INDEX is '9999"),
    ] {
        refused(&Flags::default(), variables, words);
    }
    refused(
        &flags(Some(5), Some(4), Some("a:1")),
        "",
        "--node is 5, but --nodes is 4: nodes count from 0 to 3",
    );
    refused(&flags(None, Some(2), None), SRUN, "SLURM_PROCID is 3, but --nodes is 2");
}

#[test]
fn a_meeting_place_is_a_host_and_a_port_or_a_file() {
    for text in [
        "a",
        "a:",
        ":1",
        "a:0",
        "a:70000",
        "a:b",
        "file:",
        "::1:5",
        "[]:5",
        "tcp://a:1",
        "a:1/x",
        "[::1]",
    ] {
        let words = format!("--rendezvous is '{text}': give HOST:PORT, or file:PATH");
        refused(&flags(Some(0), Some(2), Some(text)), "", &words);
        refused(
            &Flags::default(),
            &format!("ADAPM_RENDEZVOUS={text}"),
            &format!("ADAPM_RENDEZVOUS is '{text}'"),
        );
    }
    refused(&flags(Some(0), Some(2), Some("a b:1")), "", "--rendezvous is 'a b:1'");
}
