//! House rules that no compiler checks, over all files of the workspace: sizes of files, functions and inline tests;
//! an opening `//!` in each file; `unsafe` in its few files only; no ignored or sleeping tests, nothing unfinished;
//! the words of the glossary in the core; the list of pages; the names at the top level; code and tests for the papers' sections. What is a matter of taste is not here.

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
mod tree;

use std::fs;
use std::process::Command;

#[test]
fn every_file_keeps_the_house_rules() {
    let files = tree::files();
    let rust = files.iter().filter(|file| file.is_rust()).count();
    assert!(rust > 10, "only {rust} sources found under {}: the walk is broken", tree::root().display());
    let broken: Vec<String> = files.iter().flat_map(rules::check).collect();
    assert!(broken.is_empty(), "{} breaches\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn the_top_level_holds_what_the_architecture_names() {
    let names = top_level();
    let expected = || tree::FOLDERS.iter().chain(&tree::FILES);
    for name in expected() {
        assert!(names.iter().any(|found| found == name), "{name} is missing at the top level");
    }
    for name in &names {
        let may = expected().any(|expected| expected == name) || name.starts_with('.') || name == "target";
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

/// What version control knows of, so that a file a user saved there breaks nothing; without it, what lies there.
fn top_level() -> Vec<String> {
    let listed = Command::new("git").arg("-C").arg(tree::root()).args(["ls-files", "-z"]).output();
    if let Ok(output) = listed {
        let paths = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut names: Vec<String> =
            paths.split('\0').filter_map(|path| path.split('/').next()).map(str::to_owned).collect();
        names.retain(|name| !name.is_empty());
        names.dedup();
        if output.status.success() && !names.is_empty() {
            return names;
        }
    }
    let entries = fs::read_dir(tree::root()).expect("the workspace can be read");
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
