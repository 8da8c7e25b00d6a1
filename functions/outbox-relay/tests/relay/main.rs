//! The relay in front of queues that do as they are told: what goes where, and which position is held.

#![cfg(test)]

mod events;
mod fifo;
mod measured;
mod support;
