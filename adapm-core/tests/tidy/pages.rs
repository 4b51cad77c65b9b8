//! The list of pages on the front page of each crate: unlisted pages are not found.

use std::collections::BTreeSet;

use crate::tree::{self, File};

/// The list; its links lead from the front page of any crate.
const LIST: &str = "adapm-core/docs/pages.md";

#[test]
fn every_page_is_listed_on_the_front_page_of_each_crate() {
    let files = tree::files();
    let list = text(&files, LIST).expect("the list of pages exists");
    let pages: BTreeSet<String> = files
        .iter()
        .filter(|file| is_page(&file.path))
        .map(|file| link(&files, &file.path))
        .collect();
    assert!(pages.len() > 10, "only {pages:?}: the walk is broken");
    for page in &pages {
        assert!(
            list.contains(&format!("({page})")),
            "{page} is missing in {LIST}: add a row with its subject"
        );
    }
    for listed in list.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(pages.contains(listed), "{LIST} lists {listed}, which leads nowhere");
    }
    let verify = "adapm-core/verify";
    for name in tree::FOLDERS.iter().filter(|name| **name != "fuzz").chain([&verify]) {
        let front =
            text(&files, &format!("{name}/src/lib.rs")).expect("each crate has a front page");
        let own = front.lines().any(|line| {
            line.starts_with("#![doc = include_str!(") && line.contains("docs/pages.md")
        });
        assert!(own, "{name}/src/lib.rs does not include {LIST}");
    }
}

fn is_page(path: &str) -> bool {
    path != LIST && path.ends_with(".md") && path.split('/').nth(1) == Some("docs")
}

/// Returns the place where rustdoc puts a page: that of the module that includes it, as a module of
/// `docs` or at its own head.
fn link(files: &[File], path: &str) -> String {
    let (name, page) = path.split_once('/').expect("a page is in a crate");
    let include = format!("include_str!(\"../{page}\")");
    let stem = page.trim_start_matches("docs/").trim_end_matches(".md").replace('-', "_");
    let crate_name = name.replace('-', "_");
    let docs = text(files, &format!("{name}/src/docs.rs")).unwrap_or_default();
    if docs.contains(&format!("#[doc = {include}]\npub mod {stem} ")) {
        return format!("../{crate_name}/docs/{stem}/index.html");
    }
    let head = text(files, &format!("{name}/src/{stem}/mod.rs")).unwrap_or_default();
    assert!(
        head.contains(&format!("#![doc = include_str!(\"../../{page}\")]")),
        "{path} is part of no documentation"
    );
    format!("../{crate_name}/{stem}/index.html")
}

fn text<'a>(files: &'a [File], path: &str) -> Option<&'a str> {
    files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
}
