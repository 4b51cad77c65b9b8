//! The tables in `docs/testing.md`, compared with the suites' results so that they stay correct.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use crate::finding::{self, Row};

/// A lock for tests that write the page.
static PAGE: Mutex<()> = Mutex::new(());

/// Compares the page's text between the marks of `name` with `table`; with `ADAPM_BLESS` writes it
/// there.
pub(crate) fn compare(name: &str, table: &str) {
    let _turn = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/testing.md");
    let page = fs::read_to_string(&path).expect("docs/testing.md is there");
    let (before, rest) = page.split_once(&begin).expect("the page has a place for the table");
    let (stands, after) = rest.split_once(&end).expect("the table has an end");
    if env::var_os("ADAPM_BLESS").is_some() {
        fs::write(&path, [before, &begin, table, &end, after].concat())
            .expect("the page can be written");
        return;
    }
    assert!(
        stands == table,
        "docs/testing.md tells otherwise of the {name} than the suites; look at what has changed, then run\n\
         ADAPM_BLESS=1 cargo test -p adapm-core --test planted\n{table}"
    );
}

/// Returns the table of the planted bugs.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "\n| bug | the mistake | place | breaks | found by | after schedules | stories that fail |\n\
         | --- | --- | --- | --- | --- | ---: | --- |\n",
    );
    for Row { bug, mistake, place, breaks, suite, seeds, stories, .. } in rows {
        let seeds = seeds.map_or_else(|| String::from("-"), |seeds| seeds.to_string());
        let stories = match stories.as_slice() {
            [] => String::from("none"),
            [story] => format!("`{story}`"),
            [first, rest @ ..] => format!("`{first}` and {} more", rest.len()),
        };
        table += &format!(
            "| {bug} | {mistake} | {place} | {breaks} | {suite} | {seeds} | {stories} |\n"
        );
    }
    let (Ok(line) | Err(line)) = finding::verdict(rows);
    table + &format!("\n{line}, half of them within {} schedules.\n\n", crate::median(rows))
}
