//! What each call does, one behaviour a test.

#![cfg(test)]

mod world;

mod dead_letters;
mod messages;
mod queues;

mod fifo_dead_letters;
mod fifo_deduplication;
mod fifo_order;
mod fifo_queues;
mod fifo_receives;
