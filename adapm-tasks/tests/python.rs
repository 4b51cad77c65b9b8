//! What Python says, where one with these packages is installed: figures of clicks equal those of
//! scikit-learn, and `safetensors` reads a model.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use adapm_tasks::metric::ClickMetrics;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Reads a case a line, `logit:label` by `logit:label`, and writes its AUC and logarithmic loss.
const PEER: &str = "
import math, sys
from sklearn.metrics import log_loss, roc_auc_score
for line in sys.stdin:
    pairs = [pair.split(':') for pair in line.split()]
    logits, labels = [float(logit) for logit, _ in pairs], [int(label) for _, label in pairs]
    p = [min(max(1 / (1 + math.exp(-logit)), 1e-7), 1 - 1e-7) for logit in logits]
    print(repr(float(roc_auc_score(labels, logits))), repr(float(log_loss(labels, p))))
";

struct Case {
    logits: Vec<f32>,
    labels: Vec<bool>,
}

/// Cases of few and many examples, with no, some and nothing but ties, and clicks that are rare.
fn cases() -> Vec<Case> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut cases = Vec::new();
    for len in [2, 17, 1_000, 50_000] {
        for steps in [0.0, 1.0, 8.0, 1e6] {
            for share in [0.5, 0.02] {
                let mut labels: Vec<bool> = (0..len).map(|_| random.random_bool(share)).collect();
                // Both kinds are needed.
                (labels[0], labels[1]) = (true, false);
                let mut logit = |is_click: &bool| {
                    let drawn: f32 = random.random_range(-4.0..3.0);
                    let logit = drawn + if *is_click { 1.0 } else { 0.0 };
                    if steps > 0.0 { (logit * steps).round() / steps } else { 0.25 }
                };
                let logits = labels.iter().map(&mut logit).collect();
                cases.push(Case { logits, labels });
            }
        }
    }
    let logits = vec![-90.0, 80.0, -20.0, 20.0, 16.5, -16.5];
    cases.push(Case { logits, labels: vec![true, false, false, true, true, false] });
    cases
}

/// Returns a Python that has a package, if there is one.
fn python_with(package: &str) -> Option<OsString> {
    let python = std::env::var_os("ADAPM_PYTHON").unwrap_or_else(|| "python3".into());
    let import = format!("import {package}");
    let tried = Command::new(&python).args(["-c", &import]).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success()).then_some(python)
}

/// Returns scikit-learn's figures of the cases; `None` if it is not installed.
fn of_peer(cases: &[Case]) -> Option<Vec<[f64; 2]>> {
    let mut peer = Command::new(python_with("sklearn")?)
        .args(["-c", PEER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it has just run");
    let mut text = String::new();
    for case in cases {
        let pairs = case.logits.iter().zip(&case.labels);
        let pairs =
            pairs.map(|(logit, label)| format!("{}:{}", f64::from(*logit), u8::from(*label)));
        text += &(pairs.collect::<Vec<_>>().join(" ") + "\n");
    }
    let mut stdin = peer.stdin.take().expect("is piped");
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = peer.wait_with_output().expect("it ends");
    writer.join().expect("does not panic").expect("it reads all");
    assert!(output.status.success(), "{}", output.status);
    let figures = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse().expect("a number"));
        [numbers.next().expect("an AUC"), numbers.next().expect("a loss")]
    };
    Some(String::from_utf8(output.stdout).expect("is text").lines().map(figures).collect())
}

#[test]
fn area_and_loss_are_those_of_scikit_learn() {
    let cases = cases();
    let Some(expected) = of_peer(&cases) else {
        println!("SKIPPED scikit-learn: no Python that has it; name one in ADAPM_PYTHON");
        return;
    };
    assert_eq!(expected.len(), cases.len());
    for (Case { logits, labels }, [auc, log_loss]) in cases.iter().zip(expected) {
        let ours = ClickMetrics::of(logits, labels);
        let what = format!("{} examples: {ours:?}, not {auc} and {log_loss}", logits.len());
        assert!((ours.auc - auc).abs() < 1e-9, "{what}");
        assert!((ours.log_loss - log_loss).abs() < 1e-9, "{what}");
    }
}

/// Reads a model, and what was exported of it; writes nothing unless they differ.
const READER: &str = "
import json, sys, numpy
from safetensors import safe_open
model, table, names = sys.argv[1:]
with safe_open(model, 'np') as file:
    assert json.loads(file.metadata()['adapm']) == {'version': 3, 'task': 'kge'}, file.metadata()
    entities = file.get_tensor('entities')
    lines = bytes(file.get_tensor('entities.names')).decode().split('\\n')[:-1]
    head = json.loads(bytes(file.get_tensor('adapm.head')))
    others = {name: file.get_tensor(name).shape for name in file.keys()}
exported = numpy.load(table)
assert entities.dtype == exported.dtype and (entities == exported).all()
assert len(lines) == len(entities) and 'next\\u2028line' in lines, lines
assert lines == open(names, newline='\\n').read().split('\\n')[:-1]
assert (head['model'], head['dim']) == ('complex', 4), head
assert others['relations'][1] == 4 and others['inverses'] == others['relations'], others
";

#[test]
fn a_model_is_read_by_safetensors_of_python_and_is_what_is_exported() {
    let Some(python) = python_with("safetensors.numpy") else {
        println!("SKIPPED safetensors: no Python that has it; name one in ADAPM_PYTHON");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    fs::create_dir_all(&folder).expect("a folder can be made");
    let files = ["model", "entities.npy", "names", "facts.tsv"].map(|name| folder.join(name));
    let [model, table, names, facts] = files.each_ref().map(|file| file.to_str().expect("UTF-8"));
    // Not every line end of Python is one of ours.
    fs::write(facts, "a\tis\tnext\u{2028}line\nb\tis\ta\n").expect("a file can be written");
    let train = "train kge --model complex --reciprocal --dim 4 --epochs 1 --no-eval --data";
    let export = "export kge --format npy --table entities --load";
    for (words, more) in [
        (train, vec![facts, "--save", model]),
        (export, vec![model, "--output", table, "--names", names]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_adapm"));
        let ran = command.args(words.split(' ')).args(more).output().expect("the binary starts");
        assert!(ran.status.success(), "{ran:?}");
    }
    let read = Command::new(python).args(["-c", READER, model, table, names]).output();
    let read = read.expect("it has just run");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}
