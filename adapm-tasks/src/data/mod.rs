//! Reading and generating the examples of the tasks.
//!
//! A reader takes any bytes: what is wrong comes back as a [`DataError`] that names file, line and
//! column, and what to do. Data that has no file comes from seeded generators with known
//! structure.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) mod bytes;
mod click_fault;
mod detect;
mod error;
pub(crate) mod family;
mod foreign;
pub(crate) mod grammar;
pub(crate) mod graph_fault;
pub(crate) mod lines;
mod looks;
pub(crate) mod names;
pub(crate) mod ratings;
pub(crate) mod spill;
pub(crate) mod triples;

pub use click_fault::ClickFault;
pub use detect::looks_like;
pub use error::{DATA_VARIABLE, DataError, Malformation, RatingFault, UnknownColumns};
pub use foreign::Foreign;
pub use graph_fault::GraphFault;
pub use looks::Looks;
pub use ratings::{RatingFormat, RatingId, Separator};

/// Finds the data that `name` means: a path that exists, else the folder
/// `$ADAPM_DATA/<task>/<name>`, ignoring case.
///
/// # Errors
///
/// [`DataError::UnknownName`] if neither exists.
pub fn locate(task: &'static str, name: &Path) -> Result<PathBuf, DataError> {
    if name.exists() {
        return Ok(name.to_path_buf());
    }
    let searched = env::var_os(DATA_VARIABLE).map(|root| Path::new(&root).join(task));
    let found =
        searched.as_deref().and_then(|folder| entry_ignoring_case(folder, name).ok().flatten());
    found.ok_or_else(|| DataError::UnknownName { name: name.to_path_buf(), searched })
}

/// Returns the entry of `folder` whose name equals `name` but for the case of letters; the first by
/// name if there are several.
fn entry_ignoring_case(folder: &Path, name: &Path) -> io::Result<Option<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        if entry.file_name().eq_ignore_ascii_case(name.as_os_str()) {
            found.push(entry.path());
        }
    }
    Ok(found.into_iter().min())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_exists_nowhere_is_an_error_that_says_where_it_was_looked_for() {
        let error = locate("kge", Path::new("no/such/data")).expect_err("nothing there");
        assert!(
            matches!(&error, DataError::UnknownName { name, .. } if name == Path::new("no/such/data"))
        );
        assert!(error.to_string().contains("no/such/data"));
    }
}
