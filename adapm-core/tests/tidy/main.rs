//! House rules that no compiler checks, over all files of the workspace: sizes of files, functions
//! and inline tests; an opening `//!` in each file; `unsafe` only in its few files; no ignored or
//! sleeping tests, nothing unfinished; the width of comments; the list of pages; the names at the
//! top level; code and tests for the papers' sections; types implemented in at most two files; no
//! circles of files; the figures of the engine; patches that fit it. Matters of taste are not here.

mod engine;
#[cfg(test)]
mod engine_tests;
mod modules;
#[cfg(test)]
mod modules_tests;
#[cfg(test)]
mod pages;
mod rules;
#[cfg(test)]
mod rules_tests;
mod scan;
#[cfg(test)]
mod scan_tests;
mod sections;
#[cfg(test)]
mod sections_tests;
mod spread;
#[cfg(test)]
mod spread_tests;
mod tree;

use std::fs;
use std::process::Command;

#[test]
fn every_file_keeps_the_house_rules() {
    let files = tree::files();
    let rust = files.iter().filter(|file| file.is_rust()).count();
    assert!(
        rust > 10,
        "only {rust} sources found under {}: the walk is broken",
        tree::root().display()
    );
    let broken: Vec<String> = files.iter().flat_map(rules::check).collect();
    assert!(broken.is_empty(), "{} breaches\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn a_type_is_implemented_in_two_files_at_most() {
    let files = tree::files();
    let mut found = Vec::new();
    let mut types = 0;
    for folder in CRATES {
        for (item, places) in spread::of(&files, folder) {
            types += 1;
            if places.len() > spread::FILES_MAX {
                let places: Vec<String> = places.into_iter().collect();
                found.push((format!("{}: {}", item.file, item.name), places.join(", ")));
            }
        }
    }
    assert!(types > 100, "only {types} types: the walk is broken");
    println!(
        "{} of {types} types are implemented in more than {} files",
        found.len(),
        spread::FILES_MAX
    );
    judge("implemented in too many files", found);
}

#[test]
fn no_files_depend_on_each_other_in_a_circle() {
    let files = tree::files();
    let mut found = Vec::new();
    for folder in WITHOUT_CIRCLES {
        let modules = modules::Modules::of(&files, folder);
        for circle in modules.circles() {
            found.push((circle.join(" "), modules.reasons(&circle).join("\n    ")));
        }
    }
    println!("{} circles of files", found.len());
    judge("a circle of files", found);
}

#[test]
fn the_engine_is_no_knot() {
    let files = tree::files();
    let fields = engine::fields_reached(&files);
    let calls = engine::calls_across(&files);
    println!(
        "{} fields of the engine beside its context that another file can reach: {fields:?}",
        fields.len()
    );
    println!("{} calls from one file of an object into another", calls.len());
    let (places, drivers) = (engine::places_of_wants(&files), engine::drivers(&files));
    println!("{} machines hold that this node wants a key: {places:?}", places.len());
    println!("{} files drive an engine: {drivers:?}", drivers.len());
    assert!(
        (1..=engine::PLACES_OF_WANTS_MAX).contains(&places.len()),
        "{} at most",
        engine::PLACES_OF_WANTS_MAX
    );
    assert!((1..=engine::DRIVERS_MAX).contains(&drivers.len()), "{} at most", engine::DRIVERS_MAX);
    assert!(fields.len() <= engine::FIELDS_MAX, "{} at most", engine::FIELDS_MAX);
    assert!(
        calls.len() <= engine::CALLS_MAX,
        "{} at most:\n{}",
        engine::CALLS_MAX,
        calls.join("\n")
    );
}

/// Fails with all of `found`, each with its reason.
fn judge(what: &str, found: Vec<(String, String)>) {
    let breaches: Vec<String> =
        found.into_iter().map(|(name, why)| format!("{what}: {name}\n    {why}")).collect();
    assert!(breaches.is_empty(), "{} breaches\n{}", breaches.len(), breaches.join("\n"));
}

#[test]
fn the_top_level_holds_what_the_architecture_names() {
    let names = top_level();
    let expected = || tree::FOLDERS.iter().chain(&tree::FILES);
    for name in expected() {
        assert!(names.iter().any(|found| found == name), "{name} is missing at the top level");
    }
    for name in &names {
        let may = expected().any(|expected| expected == name)
            || name.starts_with('.')
            || name == "target";
        assert!(may, "{name} may not lie at the top level: put it into a crate");
    }
}

#[test]
fn every_section_of_the_papers_leads_to_code_and_test() {
    let files = tree::files();
    let mut missing = Vec::new();
    for section in sections::SECTIONS {
        let cited = sections::cited(section, &files);
        println!("{section}: {} in code, {} in tests", cited.code.len(), cited.tests.len());
        if cited.code.is_empty() {
            missing.push(format!("{section}: cited by no code"));
        }
        if cited.tests.is_empty() {
            missing.push(format!("{section}: cited by no test"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_mutant_still_fits_the_engine() {
    let folder = tree::root().join("adapm-core/verify/mutants");
    let entries = fs::read_dir(&folder).expect("the mutants can be listed");
    let mut patches: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    patches.retain(|path| path.extension().is_some_and(|ending| ending == "patch"));
    assert!(patches.len() > 3, "only {} patches: the walk is broken", patches.len());
    let git = |patch| {
        let mut git = Command::new("git");
        git.current_dir(tree::root()).args(["apply", "--check"]).arg(patch).output()
    };
    for patch in &patches {
        let Ok(tried) = git(patch) else {
            println!("SKIPPED mutants: no git here to try them with");
            return;
        };
        let why = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(tried.status.success(), "make it again for the engine as it is: {why}");
    }
}

/// Returns the top-level names known to version control, so that a user's own files there break
/// nothing; without version control, all names there.
fn top_level() -> Vec<String> {
    let listed = Command::new("git").arg("-C").arg(tree::root()).args(["ls-files", "-z"]).output();
    if let Ok(output) = listed {
        let paths = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut names: Vec<String> = paths
            .split('\0')
            .filter_map(|path| path.split('/').next())
            .map(str::to_owned)
            .collect();
        names.retain(|name| !name.is_empty());
        names.dedup();
        if output.status.success() && !names.is_empty() {
            return names;
        }
    }
    let entries = fs::read_dir(tree::root()).expect("the workspace can be read");
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The sources of each crate.
const CRATES: [&str; 7] = [
    "adapm-core/src/",
    "adapm-core/verify/src/",
    "adapm-store/src/",
    "adapm-transport/src/",
    "adapm-runtime/src/",
    "adapm-tasks/src/",
    "fuzz/src/",
];
/// The sources of each crate whose files must not depend on each other in circles.
const WITHOUT_CIRCLES: [&str; 6] = [
    "adapm-core/src/",
    "adapm-core/verify/src/",
    "adapm-store/src/",
    "adapm-transport/src/",
    "adapm-runtime/src/",
    "adapm-tasks/src/",
];
