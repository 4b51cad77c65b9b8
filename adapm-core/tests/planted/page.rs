//! The table of planted bugs in `docs/testing.md`: as long as it says what the suites say, it cannot rot.

use std::path::Path;
use std::{env, fs};

use crate::finding::{self, Row};

const BEGIN: &str = "<!-- planted bugs -->\n";
const END: &str = "<!-- end of planted bugs -->\n";

/// Compares the page with the rows; with `ADAPM_BLESS` writes them into it.
pub(crate) fn compare(rows: &[Row]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/testing.md");
    let page = fs::read_to_string(&path).expect("docs/testing.md is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the table");
    let (stands, after) = rest.split_once(END).expect("the table has an end");
    let table = table(rows);
    if env::var_os("ADAPM_BLESS").is_some() {
        fs::write(&path, [before, BEGIN, &table, END, after].concat()).expect("the page can be written");
        return;
    }
    assert!(
        stands == table,
        "docs/testing.md tells otherwise of the planted bugs than the suites; look at what has changed, then run\n\
         ADAPM_BLESS=1 cargo test -p adapm-core --test planted\n{table}"
    );
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "\n| bug | the mistake | breaks | found by | after schedules | stories that fail |\n\
         | --- | --- | --- | --- | ---: | --- |\n",
    );
    for Row { bug, mistake, breaks, suite, seeds, stories, .. } in rows {
        let seeds = seeds.map_or_else(|| String::from("never"), |seeds| seeds.to_string());
        let stories = match stories.as_slice() {
            [] => String::from("none"),
            [story] => format!("`{story}`"),
            [first, rest @ ..] => format!("`{first}` and {} more", rest.len()),
        };
        table += &format!("| {bug} | {mistake} | {breaks} | {suite} | {seeds} | {stories} |\n");
    }
    let (Ok(line) | Err(line)) = finding::verdict(rows);
    table + &format!("\n{line}, half of them within {} schedules.\n\n", crate::median(rows))
}
