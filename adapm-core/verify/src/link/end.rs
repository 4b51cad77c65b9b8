//! The two ends of a link.

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The end that makes new pipes.
    Dialer = 0,
    /// The end that answers.
    Listener = 1,
}

impl End {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::Dialer, Self::Listener];

    /// Returns the other end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Dialer => Self::Listener,
            Self::Listener => Self::Dialer,
        }
    }
}
