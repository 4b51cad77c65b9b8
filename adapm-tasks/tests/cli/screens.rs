//! The screen: nothing is wider than the terminal, no bar is left behind, and without a terminal
//! there are plain lines.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use crate::harness::{Ran, adapm, finish, folder, ring, run};
use crate::terminal::{Seen, on_terminal};
use crate::together::launch;

/// Checks that no line is wider than `columns`, that no bar is left, and that none was shown before
/// there was anything to show.
#[track_caller]
fn assert_fits(seen: &Seen, columns: usize) {
    assert_eq!(seen.code, Some(0), "{:#?}", seen.lines);
    assert!(!seen.lines.is_empty());
    assert!(
        seen.too_long.is_empty(),
        "on {columns} columns: {:#?} in {:#?}",
        seen.too_long,
        seen.lines
    );
    for line in &seen.lines {
        assert!(!line.contains('━') && !line.contains('─'), "a bar is left: {:#?}", seen.lines);
    }
    assert!(!seen.raw.contains("0/0"), "{:?}", seen.raw);
}

/// Returns a command in a folder: names of files are as short as any terminal is wide.
fn at(folder: &Path, args: &[&str]) -> Command {
    let mut command = adapm(args);
    command.current_dir(folder).env("TMPDIR", "/tmp");
    command
}

/// Runs `args` in a folder.
fn run_at(folder: &Path, args: &[&str]) -> Ran {
    finish(at(folder, args).spawn().expect("the binary starts"))
}

/// Shows `args` on terminals of 80 and of 120 columns.
#[track_caller]
fn shown(folder: &Path, args: &[&str]) -> [Seen; 2] {
    [80, 120].map(|columns| {
        let seen = on_terminal(&mut at(folder, args), columns);
        assert_fits(&seen, columns.into());
        seen
    })
}

const MATRIX: [&str; 8] = ["--rows", "60", "--columns", "40", "--cells", "600", "--dim", "4"];

/// Returns a quick training of each task, in which everything that can be printed of it is printed.
fn trainings(folder: &Path) -> Vec<Vec<String>> {
    ring(folder);
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();

    let kge = ["--data", ".", "--dim", "8", "--epochs", "3", "--n3", "0.001", "--reciprocal"];
    let mf = [MATRIX.as_slice(), &["--test-cells", "60", "--epochs", "3"]].concat();
    let wv = ["--sentences", "300", "--dim", "8", "--epochs", "2", "--min-count", "1"];
    let gnn = ["--graph-nodes", "300", "--features", "learned", "--dim", "4", "--epochs", "2"];
    [("kge", kge.as_slice()), ("mf", &mf), ("wv", wv.as_slice()), ("gnn", gnn.as_slice())]
        .map(|(task, flags)| [own(&["train", task]), own(flags), own(&["--save", task])].concat())
        .to_vec()
}

#[test]
fn the_demo_fits_and_leaves_no_bar() {
    for seen in
        shown(&folder("screens_demo"), &["demo", "--epochs", "1", "--dim", "4", "--nodes", "2"])
    {
        let text = seen.lines.join("\n");
        for words in ["adapm demo", "test MRR", "best possible: 1.0000", "try next"] {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
        assert!(
            seen.raw.contains('━') || seen.raw.contains('─'),
            "no bar was shown: {:?}",
            seen.raw
        );
    }
}

#[test]
fn trainings_of_all_tasks_on_any_number_of_nodes_fit() {
    let folder = folder("screens_train");
    for training in trainings(&folder) {
        for nodes in ["1", "2", "4"] {
            let words: Vec<&str> =
                training.iter().map(String::as_str).chain(["--nodes", nodes]).collect();
            for seen in shown(&folder, &words) {
                let text = seen.lines.join("\n");
                let epochs = text.lines().filter(|line| line.starts_with("epoch ")).count();
                assert!(epochs >= 2 && text.contains("result on "), "{text}");
            }
        }
        let words: Vec<&str> = training.iter().map(String::as_str).collect();
        for seen in
            shown(&folder, &launch(&["--nodes", "2"], &[&words[..], &["--workers", "1"]].concat()))
        {
            let text = seen.lines.join("\n");
            assert!(
                text.contains("n0 | cluster   2 processes") && text.contains("\nepoch   2"),
                "{text}"
            );
            // Of node 0, whose stderr is a pipe.
            assert!(
                seen.raw.contains('━') || seen.raw.contains('─'),
                "no bar was shown: {:?}",
                seen.raw
            );
            assert!(!seen.raw.contains('\u{1e}'), "{:?}", seen.raw);
        }
    }
}

#[test]
fn evaluations_exports_and_traces_fit() {
    let folder = folder("screens_eval");
    for training in trainings(&folder) {
        let training = training.iter().map(String::as_str).collect::<Vec<_>>();
        let traced =
            [training.as_slice(), &["--trace-keys", "trace", "--nodes", "2", "--no-eval"]].concat();
        assert_eq!(run_at(&folder, &traced).code, Some(0));
        shown(&folder, &["trace", "trace"]);
        shown(&folder, &["trace", "trace", "--svg", "svg"]);
        let task = training[1];
        let data = match task {
            "kge" => vec!["--data", "."],
            "mf" => [&MATRIX[..6], &["--test-cells", "60"]].concat(),
            "gnn" => vec!["--graph-nodes", "300"],
            _ => Vec::new(),
        };
        shown(&folder, &[vec!["eval", task, "--load", task], data].concat());
        shown(&folder, &["export", task, "--load", task, "--output", "out"]);
    }
}

#[test]
fn everything_else_fits() {
    let folder = folder("screens_else");
    for task in ["kge", "mf", "wv", "ctr", "gnn"] {
        shown(&folder, &["train", task, "--recipe"]);
    }
    let systems = "adapm,adapm-no-relocation,classic,nups";
    let simulated =
        ["simulate", "--task", "mf", "--workers", "2", "--system", systems, "--compute", "100"];
    shown(&folder, &[simulated.as_slice(), &["--nodes", "2,8"]].concat());
    shown(&folder, &["bench", "signals", "--quick"]);
    for nodes in ["2", "4"] {
        shown(&folder, &launch(&["--nodes", nodes], &["check-net", "--seconds", "0.1"]));
    }
    assert_fits(&on_terminal(&mut at(&folder, &["token", "token"]), 80), 80);
}

/// Returns the words under a heading of a help text, which are verbs or tasks.
fn listed(help: &str, heading: &str) -> Vec<String> {
    let lines = help
        .lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_help_fits() {
    let mut commands = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = commands.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        for columns in [80, 120] {
            for flag in ["-h", "--help"] {
                let seen = on_terminal(&mut adapm(&[words.as_slice(), &[flag]].concat()), columns);
                assert_fits(&seen, columns.into());
            }
        }
        seen += 1;
        // As it was written: an example that is broken is hard to read.
        let help = run(&[words.as_slice(), &["--help"]].concat()).stdout;
        let examples =
            help.lines().skip_while(|line| !line.starts_with("Example")).collect::<Vec<_>>();
        // Sentences below them are broken between words.
        let fits = |line: &&str| !line.starts_with("  ") || line.chars().count() <= 80;
        assert!(examples.iter().all(fits), "{examples:#?}");
        for name in ["Verbs:", "Tasks:"].iter().flat_map(|heading| listed(&help, heading)) {
            if name != "help" {
                commands.push([command.clone(), vec![name]].concat());
            }
        }
    }
    assert!(seen >= 15, "{seen} helps");
}

#[test]
fn where_nobody_looks_there_are_plain_lines() {
    let folder = folder("screens_plain");
    let trainings = trainings(&folder);
    let kge: Vec<&str> = trainings[0].iter().map(String::as_str).collect();
    let demo = ["demo", "--epochs", "1", "--dim", "4", "--nodes", "2"];
    let is_plain = |text: &str| {
        !text.contains(['\u{1b}', '\u{1e}']) && !text.replace("\r\n", "\n").contains('\r')
    };
    for args in [kge.clone(), demo.to_vec(), launch(&["--nodes", "2"], &kge), vec!["--help"]] {
        let mut command = at(&folder, &args);
        // As wide as a terminal would be.
        command.env_remove("COLUMNS");
        let ran = finish(command.spawn().expect("the binary starts"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(is_plain(&ran.stdout) && is_plain(&ran.stderr), "{ran:?}");
        let wide: Vec<&str> = ran.stdout.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
        for (name, value) in [("TERM", "dumb"), ("NO_COLOR", "1")] {
            // Neither does what a machine that builds says of itself count for more.
            let seen = on_terminal(at(&folder, &args).env(name, value).env("CI", "true"), 80);
            assert!(seen.code == Some(0) && is_plain(&seen.raw), "{name}: {:?}", seen.raw);
        }
    }
}

#[test]
fn a_log_holds_the_epochs_and_each_of_them_once() {
    let folder = folder("screens_log");
    let trainings = trainings(&folder);
    let kge: Vec<&str> = trainings[0].iter().map(String::as_str).collect();
    let epochs = |text: &str| text.lines().filter(|line| line.contains("epoch  ")).count();
    for args in [kge.clone(), launch(&["--nodes", "2"], &kge)] {
        let ran = run_at(&folder, &args);
        assert_eq!((epochs(&ran.stdout), epochs(&ran.stderr)), (3, 0), "{ran:?}");
        let mut command = at(&folder, &[args.as_slice(), &["--json"]].concat());
        let ran = finish(command.env_remove("COLUMNS").spawn().expect("the binary starts"));
        let wide: Vec<&str> = ran.stderr.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
        assert_eq!((epochs(&ran.stdout), epochs(&ran.stderr)), (0, 3), "{ran:?}");
    }
}

/// Runs a command whose reader leaves after the first line, as `head -1` does.
#[track_caller]
fn assert_bears_head(command: &mut Command) {
    let mut child = command.spawn().expect("the binary starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line of text");
    drop(stdout);
    let ran = finish(child);
    assert_eq!(ran.code, Some(0), "behind {line:?}: {ran:?}");
    assert!(!ran.stderr.contains("error"), "{ran:?}");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = folder("screens_head");
    let bears_head = |args: &[&str]| assert_bears_head(&mut at(&folder, args));
    for training in trainings(&folder) {
        let words: Vec<&str> = training.iter().map(String::as_str).collect();
        assert_eq!(run_at(&folder, &words).code, Some(0));
        bears_head(&words);
        bears_head(&[words.as_slice(), &["--json"]].concat());
        bears_head(&launch(&["--nodes", "2"], &words));
        bears_head(&["export", words[1], "--load", words[1], "--output", "/dev/stdout"]);
        bears_head(&["train", words[1], "--recipe"]);
    }
    bears_head(&["eval", "kge", "--data", ".", "--load", "kge", "--ranks", "/dev/stdout"]);
    bears_head(&[
        "eval",
        "mf",
        "--load",
        "mf",
        "--rows",
        "60",
        "--columns",
        "40",
        "--cells",
        "600",
    ]);
    bears_head(&["simulate", "--task", "mf", "--workers", "2", "--nodes", "2", "--compute", "100"]);
    bears_head(&["demo", "--epochs", "1", "--dim", "4", "--nodes", "2"]);
    bears_head(&["bench", "signals", "--quick"]);
    bears_head(&["train", "kge", "--help"]);
    // What is exported stands alone.
    let ran = run_at(&folder, &["export", "mf", "--load", "mf", "--output", "/dev/stdout"]);
    assert!(
        ran.code == Some(0) && !ran.stdout.contains("are in") && ran.stderr.contains("are in"),
        "{ran:?}"
    );
}
