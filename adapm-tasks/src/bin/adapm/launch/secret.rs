//! The secret of a run, and the private folder in which its nodes meet.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use adapm_transport::net::Token;

/// A secret as text; never printed.
pub(super) struct Secret(String);

impl Secret {
    /// 32 random bytes in hexadecimal.
    pub(super) fn fresh() -> io::Result<Self> {
        Token::fresh_text().map(Self)
    }

    /// A secret that somebody chose.
    pub(super) fn of(text: String) -> Self {
        Self(text)
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A folder that only this user can enter; removed with all that is in it.
#[derive(Debug)]
pub(super) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes one among the temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let mut name = Token::fresh_text()?;
        name.truncate(16);
        let path = std::env::temp_dir().join(format!("adapm-{name}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What is left is a small file among temporary ones.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_private_folder_is_private_and_goes_away() {
        let folder = PrivateFolder::new().expect("a folder can be made");
        let path = folder.path().to_owned();
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(path.join("rendezvous"), "x").expect("it can be written to");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn no_two_secrets_are_alike_and_none_is_shown() {
        let (one, two) = (Secret::fresh().expect("random bytes"), Secret::fresh().expect("random bytes"));
        assert_ne!(one.text(), two.text());
        assert_eq!(one.text().len(), 64);
        assert!(!format!("{one:?}").contains(one.text()));
    }
}
