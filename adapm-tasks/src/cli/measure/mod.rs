//! Verbs that measure: [`bench`](mod@bench), [`compare`], [`simulate`], [`check_net`], and
//! [`trace`], which shows what was recorded; [`plot`] is what their pictures share.

pub(crate) mod bench;
pub(crate) mod check_net;
pub(crate) mod compare;
mod plot;
pub(crate) mod simulate;
pub(crate) mod trace;
