//! What each call does, one behaviour a test.

#![cfg(test)]

mod world;

mod dead_letters;
mod messages;
mod queues;
