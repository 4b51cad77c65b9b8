//! The verb `bench`: lines, objects, and what it refuses. How fast anything is, no test says.

use serde_json::Value;

use crate::harness::{assert_refused, run};

#[test]
fn figures_stand_beside_floors_and_goals() {
    let ran = run(&["bench", "signals", "--quick"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in
        ["floor", "goal", "C++", "signals", "intent, 100 keys a call", "ns/key", "90 to 690", "of 1 goals"]
    {
        assert!(ran.stdout.contains(words), "no {words:?} in {ran:?}");
    }
}

#[test]
fn programs_get_an_object_per_figure() {
    let ran = run(&["bench", "signals", "signals", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 2, "each group once: {rows:?}");
    let [intent, clock] = [&rows[0], &rows[1]];
    assert_eq!((&intent["group"], &intent["unit"]), (&"signals".into(), &"ns/key".into()));
    assert!(intent["value"].as_f64().is_some_and(|nanos| nanos > 0.0), "{intent}");
    assert!(intent["at_most"].is_f64() && intent["at_least"].is_null() && intent["reached"].is_boolean());
    assert!(clock["floor"].is_f64() && clock["reached"].is_null(), "{clock}");
}

#[test]
fn a_group_that_there_is_not_is_refused_with_those_there_are() {
    assert_refused(&run(&["bench", "acess"]), &["acess", "access"]);
    assert_refused(&run(&["bench", "--transport", "pigeon"]), &["pigeon", "tcp"]);
}
