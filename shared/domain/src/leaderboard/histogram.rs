//! How many players have which rating, in two levels: blocks of 64 ratings, and a top item with the blocks' totals. A rank
//! takes one top item and one block, however many players there are.

use std::collections::BTreeMap;

use events::{Rating, TimeControl};

use crate::{Deltas, Key, Spread, Write};

/// Ratings in a block.
pub const BLOCK_WIDTH: u16 = 64;
/// Blocks of a histogram: ratings 0 to 4000.
pub const BLOCKS: u8 = (Rating::MAX.points() / BLOCK_WIDTH + 1) as u8;
/// Every item of a histogram stands four times, so that no one of them is written by every game.
pub const HISTOGRAM_SPREAD: Spread = Spread::over(4);

/// The number of a block, 0 for the lowest ratings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u8);

impl Block {
    /// Returns the block that a rating falls into.
    pub const fn of(rating: Rating) -> Self {
        Self((rating.points() / BLOCK_WIDTH) as u8)
    }

    /// Returns all blocks, highest ratings first.
    pub fn descending() -> impl DoubleEndedIterator<Item = Self> {
        (0..BLOCKS).rev().map(Self)
    }

    /// Returns the block's number.
    pub const fn number(self) -> u8 {
        self.0
    }

    fn counter(self) -> String {
        format!("b{}", self.0)
    }
}

/// Returns the target of a histogram's block totals.
pub fn top_key(time_control: TimeControl) -> Key {
    Key::view(format!("HISTOGRAM#{time_control}"), "TOP")
}

/// Returns the target of a block's counters.
pub fn block_key(time_control: TimeControl, block: Block) -> Key {
    Key::view(format!("HISTOGRAM#{time_control}"), format!("BLOCK#{:02}", block.0))
}

/// Returns the changes to the histogram when a player's rating goes from `before` (`None`: not on the board) to `after`.
/// No writes where nothing changes.
pub(super) fn moved(time_control: TimeControl, before: Option<Rating>, after: Option<Rating>) -> Vec<Write> {
    if before == after {
        return Vec::new();
    }
    let mut top = Deltas::new();
    let mut blocks: BTreeMap<Block, Deltas> = BTreeMap::new();
    for (rating, change) in [(before, -1), (after, 1)] {
        let Some(rating) = rating else { continue };
        let block = Block::of(rating);
        *top.entry(block.counter()).or_default() += change;
        blocks.entry(block).or_default().insert(rating_counter(rating), change);
    }
    top.retain(|_, change| *change != 0);
    let top = Some((top_key(time_control), top)).filter(|(_, deltas)| !deltas.is_empty());
    let blocks = blocks.into_iter().map(|(block, deltas)| (block_key(time_control, block), deltas));
    top.into_iter().chain(blocks).map(|(key, deltas)| Write::Add { key, deltas, spread: HISTOGRAM_SPREAD }).collect()
}

fn rating_counter(rating: Rating) -> String {
    format!("r{}", rating.points())
}

/// A histogram as far as it was read: the block totals and the counters of some blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    totals: BTreeMap<u8, i64>,
    ratings: BTreeMap<u16, i64>,
}

impl Histogram {
    /// Adds one item's counters, of whichever level and shard. A shard alone may be negative; the sum is not.
    pub fn add_item<'a>(&mut self, counters: impl IntoIterator<Item = (&'a str, i64)>) {
        for (name, count) in counters {
            if let Some(block) = name.strip_prefix('b').and_then(|number| number.parse().ok()) {
                *self.totals.entry(block).or_default() += count;
            } else if let Some(rating) = name.strip_prefix('r').and_then(|number| number.parse().ok()) {
                *self.ratings.entry(rating).or_default() += count;
            }
        }
    }

    /// Returns how many players are on the board.
    pub fn players(&self) -> u64 {
        count(self.totals.values().sum())
    }

    /// Returns how many players a block holds.
    pub fn players_in(&self, block: Block) -> u64 {
        count(self.totals.get(&block.0).copied().unwrap_or(0))
    }

    /// Returns how many players have exactly this rating. The rating's block must have been read.
    pub fn players_at(&self, rating: Rating) -> u64 {
        count(self.ratings.get(&rating.points()).copied().unwrap_or(0))
    }

    /// Returns the rank of a rating: 1 + the number of players with a higher one. The rating's block must have been read.
    pub fn rank(&self, rating: Rating) -> u64 {
        let block = Block::of(rating);
        let higher_blocks: i64 = self.totals.range(block.0 + 1..).map(|(_, players)| players).sum();
        let end_of_block = (u16::from(block.0) + 1) * BLOCK_WIDTH;
        let higher_in_block: i64 =
            self.ratings.range(rating.points() + 1..end_of_block).map(|(_, players)| players).sum();
        1 + count(higher_blocks + higher_in_block)
    }

    /// Returns the cells that are not zero: ratings and their players.
    pub fn cells(&self) -> impl Iterator<Item = (u16, i64)> {
        self.ratings.iter().map(|(rating, players)| (*rating, *players)).filter(|(_, players)| *players != 0)
    }
}

fn count(players: i64) -> u64 {
    u64::try_from(players).unwrap_or(0)
}
