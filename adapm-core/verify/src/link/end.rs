//! The two ends of a link.

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Makes new pipes.
    Dialer = 0,
    /// Answers.
    Listener = 1,
}

impl End {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::Dialer, Self::Listener];

    /// The other end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Dialer => Self::Listener,
            Self::Listener => Self::Dialer,
        }
    }
}
