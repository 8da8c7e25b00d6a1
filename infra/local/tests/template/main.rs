//! The template reader, from the outside: files in, model or error out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod access;
mod errors;
mod intrinsics;
mod project;
mod schedules;
mod support;
mod topology;
mod unsupported;
