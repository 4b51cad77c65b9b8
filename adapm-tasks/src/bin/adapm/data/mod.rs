//! The verb `data`: which data sets the recipes use and where they are to be had; `data check`: what data holds.
//!
//! [`sets`] is the list, [`check`] compares files with it, [`content`] reads them as a task does.

mod check;
mod content;
pub(crate) mod sets;

use std::env;
use std::path::Path;

use adapm_tasks::data::DATA_VARIABLE;

use crate::args::{DataArgs, DataVerb};
use crate::data::sets::Set;
use crate::failure::Failure;
use crate::format;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::table::Table;

/// Lists data sets, or checks data.
pub(crate) fn run(args: &DataArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    match &args.verb {
        None => list(output),
        Some(DataVerb::Check(args)) => check::run(args, output, interrupt),
    }
}

fn list(output: Output) -> Result<(), Failure> {
    for set in sets::all() {
        output.object(&set)?;
        output.text(&described(&set, output))?;
    }
    output.text(&match env::var_os(DATA_VARIABLE) {
        Some(root) => format!("${DATA_VARIABLE} is {}\n", Path::new(&root).display()),
        None => {
            format!("${DATA_VARIABLE} is not set: export {DATA_VARIABLE}=FOLDER, then run the commands\n")
        }
    })
}

fn described(set: &Set, output: Output) -> String {
    let size = format::bytes(set.files.iter().map(|file| file.bytes).sum());
    let name = output.bold(&set.name).to_string();
    let mut table = Table::new(&[]);
    table.row(["what", &format!("{}, {size}", set.what)]);
    table.row(["task", set.task.name()]);
    table.row(["origin", &set.origin]);
    table.row(["licence", &set.licence]);
    if let Some(folder) = set.found() {
        table.row(["here", &folder.display().to_string()]);
    }
    let sums = set.files.iter().map(|file| format!("  {}  {}\n", file.sha256, file.name));
    let note = set.note.iter().map(|note| format!("  {}\n", format::wrapped(note, output.width() - 2)));
    let commands = set.commands.iter().map(|command| format!("  $ {command}\n"));
    let below: String = sums.chain(note).chain(commands).collect();
    format!("{name}\n{}{below}\n", table.render())
}
