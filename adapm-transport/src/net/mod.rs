//! Links between processes.

pub mod address;
#[expect(dead_code, reason = "used by the endpoint, which comes next")]
pub(crate) mod bell;
#[expect(dead_code, reason = "used by the endpoint, which comes next")]
pub(crate) mod carried;
pub mod hello;
pub mod packet;
#[expect(dead_code, reason = "used by the endpoint, which comes next")]
pub(crate) mod pipe;
