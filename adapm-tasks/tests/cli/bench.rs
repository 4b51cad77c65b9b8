//! The verb `bench`: lines, objects, and what it refuses. No test checks speeds.

use serde_json::Value;

use crate::harness::{adapm, assert_refused, finish, run};

#[test]
fn figures_stand_beside_floors_and_goals() {
    let ran = run(&["bench", "signals", "--quick"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "floor",
        "goal",
        "C++",
        "signals",
        "intent, 100 keys a call",
        "ns/key",
        "90 to 690",
        "of 1 goals",
    ] {
        assert!(ran.stdout.contains(words), "no {words:?} in {ran:?}");
    }
}

#[test]
fn programs_get_an_object_per_figure() {
    let ran = run(&["bench", "signals", "signals", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 2, "each group once: {rows:?}");
    let [intent, clock] = [&rows[0], &rows[1]];
    assert_eq!((&intent["group"], &intent["unit"]), (&"signals".into(), &"ns/key".into()));
    assert!(intent["value"].as_f64().is_some_and(|nanos| nanos > 0.0), "{intent}");
    assert!(
        intent["at_most"].is_f64()
            && intent["at_least"].is_null()
            && intent["reached"].is_boolean()
    );
    assert!(clock["floor"].is_f64() && clock["reached"].is_null(), "{clock}");
}

#[test]
fn a_group_that_there_is_not_is_refused_with_those_there_are() {
    assert_refused(&run(&["bench", "acess"]), &["acess", "access"]);
    assert_refused(&run(&["bench", "--transport", "pigeon"]), &["pigeon", "tcp"]);
}

#[test]
fn counts_that_nobody_can_make_are_left_out_with_a_line() {
    let counted = |flags: &[&str]| {
        let mut command = adapm(&[&["bench", "counts", "--quick"], flags].concat());
        finish(command.env("PATH", "").spawn().expect("the binary starts"))
    };
    let ran = counted(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "instructions  allocations  messages",
        "SKIPPED instructions and allocations: valgrind is not installed",
        "pull, 100 remote keys, in process",
    ] {
        assert!(ran.stdout.contains(words), "no {words:?} in {ran:?}");
    }

    let ran = counted(&["--json", "--transport", "unix"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let skipped = rows.iter().filter(|row| row["skipped"].is_string()).count();
    assert_eq!(
        (skipped, &rows[0]["what"]),
        (1, &"instructions and allocations".into()),
        "{rows:?}"
    );
    let find = |what: &str, unit: &str| {
        let row = rows.iter().find(|row| row["what"] == what && row["unit"] == unit);
        row.and_then(|row| row["value"].as_f64())
            .unwrap_or_else(|| panic!("no {unit} of {what}: {rows:?}"))
    };
    assert_eq!(find("pull, single, 25 floats", "messages/key"), 0.0);
    assert!(find("push, 100 remote keys, unix", "bytes/call") > 10_000.0);
    assert!(rows.iter().all(|row| row["group"] == "counts"), "{rows:?}");
}

#[test]
fn one_operation_alone_says_nothing() {
    let ran = run(&["bench", "--operation", "remote-pull-1x25", "--times", "3"]);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(0), "", ""));
    assert_refused(&run(&["bench", "--operation", "pull-1x26"]), &["pull-1x26"]);
}
