//! Mistakes of links over datagrams: with what is written, and with what has come.

use core::fmt;

/// A mistake planted in links over datagrams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DatagramBug {
    /// What was lost is not written again.
    RepeatNothing,
    /// Some frames are handed on twice.
    DeliverTwice,
    /// Acknowledgements count one packet more than has come.
    CountAhead,
    /// Goodbyes are lost.
    ForgetGoodbye,
    /// Datagrams of earlier processes count as those of the present ones.
    TrustAnyLife,
    /// The bounds are not looked at.
    IgnoreBounds,
}

impl DatagramBug {
    /// All bugs.
    pub const ALL: [Self; 6] = [
        Self::RepeatNothing,
        Self::DeliverTwice,
        Self::CountAhead,
        Self::ForgetGoodbye,
        Self::TrustAnyLife,
        Self::IgnoreBounds,
    ];

    /// Returns a description of the mistake, in one sentence.
    #[must_use]
    pub fn mistake(self) -> &'static str {
        match self {
            Self::RepeatNothing => "What was lost is not written again.",
            Self::DeliverTwice => "Some frames are handed on twice.",
            Self::CountAhead => "Acknowledgements count one packet more than has come.",
            Self::ForgetGoodbye => "Nobody hears goodbyes.",
            Self::TrustAnyLife => {
                "Datagrams of earlier processes count as those of the present ones."
            }
            Self::IgnoreBounds => "The bounds are not looked at.",
        }
    }
}

impl fmt::Display for DatagramBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
