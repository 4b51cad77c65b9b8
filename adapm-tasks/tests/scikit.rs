//! Figures of clicks equal those of scikit-learn, where a Python that has it is installed.

use std::io::Write as _;
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

/// Returns scikit-learn's figures of the cases; `None` if it is not installed.
fn of_peer(cases: &[Case]) -> Option<Vec<[f64; 2]>> {
    let python = std::env::var_os("ADAPM_PYTHON").unwrap_or_else(|| "python3".into());
    let has_it =
        Command::new(&python).args(["-c", "import sklearn"]).stderr(Stdio::null()).status();
    has_it.ok().filter(|status| status.success())?;
    let mut peer = Command::new(&python)
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
