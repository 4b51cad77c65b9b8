//! What is worth knowing about a graph that was read, a line each.

use adapm_tasks::kge::{Graph, GraphFiles, GraphSource};

use crate::format;

/// Something that was found.
pub(crate) struct Finding {
    /// Without a name of the data.
    pub(crate) text: String,
    /// It may make figures wrong: something is repeated, unknown, or missing.
    pub(crate) is_problem: bool,
}

impl Finding {
    pub(crate) fn note(text: String) -> Self {
        Self { text, is_problem: false }
    }

    pub(crate) fn problem(text: String) -> Self {
        Self { text, is_problem: true }
    }
}

/// What was found while the graph was read.
pub(crate) fn findings(graph: &Graph) -> Vec<Finding> {
    let mut findings = match graph.source() {
        GraphSource::Files(files) => of_files(files, [graph.valid().is_empty(), graph.test().is_empty()]),
        _ => Vec::new(),
    };
    let counts = graph.counts();
    let problems = [
        (counts.duplicates, "repeated in train, trained on once"),
        (counts.duplicates_valid, "repeated in valid, kept"),
        (counts.duplicates_test, "repeated in test, kept"),
        (counts.overlap_valid, "of valid are in train, too, kept"),
        (counts.overlap_test, "of test are in train, too, kept: figures are too good"),
        (counts.valid_in_test, "of valid are in test, too, kept"),
        (counts.unknown_valid, "of valid with a name unknown to train, kept"),
        (counts.unknown_test, "of test with a name unknown to train, kept"),
    ];
    let found = problems.into_iter().filter(|(count, _)| *count > 0);
    findings.extend(found.map(|(count, text)| Finding::problem(format!("{} {text}", format::count(count)))));
    if counts.unknown_entities + counts.unknown_relations > 0 {
        let names = [(counts.unknown_entities, "entity"), (counts.unknown_relations, "relation")];
        let names = names.into_iter().filter(|(count, _)| *count > 0);
        let names: Vec<String> = names.map(|(count, name)| format::plural(count as usize, name)).collect();
        findings.push(Finding::problem(format!("{} unknown to train", names.join(" and "))));
    }
    findings
}

/// How files were read.
fn of_files(files: &GraphFiles, [has_no_valid, has_no_test]: [bool; 2]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(seed) = files.split_seed {
        findings.push(Finding::note(format!(
            "one file, split 80/10/10 by seed {seed}; no name is unknown to train"
        )));
    }
    let [_, valid, _] = &files.files;
    let name = valid.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    if let Some(name) = name.filter(|name| name.starts_with("dev.")) {
        findings.push(Finding::note(format!("{name} is valid")));
    }
    if files.header.is_some() {
        findings.push(Finding::note("the first line names the columns, skipped".to_owned()));
    }
    if !files.unused.is_empty() {
        findings.push(Finding::note(format!("columns not used: {}", files.unused.join(", "))));
    }
    if files.trimmed > 0 {
        let names = format::plural(files.trimmed as usize, "name");
        findings.push(Finding::note(format!("{names} with blanks at an end, cut off")));
    }
    if has_no_valid {
        findings.push(Finding::problem("no valid triples: training selects on triples held back".to_owned()));
    }
    if has_no_test {
        findings.push(Finding::problem("no test triples: nothing to report on".to_owned()));
    }
    findings
}
