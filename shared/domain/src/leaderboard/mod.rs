//! Leaderboards: one a time control. A row a player, which holds what the last game and the player's record said, and a
//! histogram of the visible players' ratings, whose every change is computed from the row that is replaced. Exact ranks come
//! from the histogram alone.

mod board;
mod histogram;

pub use board::{
    BoardRow, Leaderboard, ORDER_BLOCK, ORDER_INDEX, ORDER_RANK, Order, PlayerOnBoards, order_partition, order_rank,
};
pub use histogram::{BLOCK_WIDTH, BLOCKS, Block, HISTOGRAM_SPREAD, Histogram, block_key, top_key};
