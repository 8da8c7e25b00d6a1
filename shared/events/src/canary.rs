//! The canary: an event about nothing, sent through the whole path to show that the path is whole.

use serde::{Deserialize, Serialize};

/// Payload of `canary_sent`, schema version 1: nothing. A consumer's driver counts its arrival; no decider is ever given one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CanarySent {}
