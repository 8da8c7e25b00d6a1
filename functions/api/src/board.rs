//! One board as far as it was read: the histogram's totals, the blocks that rows were found in, and the order of the rows.

use std::collections::BTreeSet;

use aws::items::{self, Item};
use domain::leaderboard::{
    Block, BoardRow, HISTOGRAM_SPREAD, Histogram, ORDER_BLOCK, ORDER_INDEX, ORDER_RANK, block_key, order_partition,
    order_rank, top_key,
};
use domain::{Key, Table};
use events::{PlayerId, Rating, TimeControl};
use futures::future::try_join_all;

use crate::problem::Problem;
use crate::store::{Direction, Index, Range, Sort, Store, StoreError};

/// Blocks that are queried at the same time, at most.
const BLOCKS_AT_ONCE_MAX: usize = 8;

const ORDER: Index = Index { name: ORDER_INDEX, partition_key: ORDER_BLOCK, sort_key: ORDER_RANK };

/// A place in the order of a board: by rating, then by player.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) rating: Rating,
    pub(crate) player_id: PlayerId,
}

/// A board.
pub(crate) struct Board<'a> {
    store: &'a Store,
    time_control: TimeControl,
    histogram: Histogram,
    blocks: BTreeSet<Block>,
}

impl<'a> Board<'a> {
    /// Reads how many players each block of ratings has.
    pub(crate) async fn load(store: &'a Store, time_control: TimeControl) -> Result<Self, StoreError> {
        let mut board = Self { store, time_control, histogram: Histogram::default(), blocks: BTreeSet::new() };
        board.add_counters(&HISTOGRAM_SPREAD.keys(&top_key(time_control))).await?;
        Ok(board)
    }

    /// The counts, as far as they were read.
    pub(crate) fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Reads the counts of the blocks that these rows stand in; their ranks are exact then.
    pub(crate) async fn load_blocks_of<'r>(
        &mut self,
        rows: impl IntoIterator<Item = &'r BoardRow>,
    ) -> Result<(), StoreError> {
        let blocks: BTreeSet<Block> = rows.into_iter().map(|row| Block::of(row.rating)).collect();
        let missing: Vec<Block> = blocks.difference(&self.blocks).copied().collect();
        let keys = missing.iter().flat_map(|block| HISTOGRAM_SPREAD.keys(&block_key(self.time_control, *block)));
        self.add_counters(&keys.collect::<Vec<_>>()).await?;
        self.blocks.extend(missing);
        Ok(())
    }

    /// Returns up to `limit` rows below a place, or from the top, highest first.
    pub(crate) async fn below(&self, place: Option<&Place>, limit: usize) -> Result<Vec<BoardRow>, Problem> {
        let own = place.map(|place| Block::of(place.rating));
        let blocks = Block::descending().skip_while(|block| own.is_some_and(|own| *block > own));
        self.rows(blocks, place, Direction::Descending, limit).await
    }

    /// Returns up to `limit` rows above a place, highest first.
    pub(crate) async fn above(&self, place: &Place, limit: usize) -> Result<Vec<BoardRow>, Problem> {
        let own = Block::of(place.rating);
        let blocks = Block::descending().rev().skip_while(|block| *block < own);
        let mut rows = self.rows(blocks, Some(place), Direction::Ascending, limit).await?;
        rows.reverse();
        Ok(rows)
    }

    /// Walks through the blocks that have players, beginning behind the place.
    async fn rows(
        &self,
        blocks: impl Iterator<Item = Block>,
        place: Option<&Place>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<BoardRow>, Problem> {
        let own = place.map(|place| Block::of(place.rating));
        let mut blocks = blocks.filter(|block| Some(*block) == own || self.histogram.players_in(*block) > 0).peekable();
        let mut rows = Vec::new();
        while rows.len() < limit && blocks.peek().is_some() {
            let left = limit - rows.len();
            let chosen = self.enough_for(left, &mut blocks);
            let queries = chosen.into_iter().map(|block| async move {
                let behind = place.filter(|_| Some(block) == own);
                self.store.query(&self.range(block, behind, direction, left)).await
            });
            for item in try_join_all(queries).await?.into_iter().flatten() {
                rows.push(decode(item)?);
            }
        }
        rows.truncate(limit);
        Ok(rows)
    }

    /// Takes as many blocks as have this many players together, going by the counts.
    fn enough_for(&self, rows: usize, blocks: &mut impl Iterator<Item = Block>) -> Vec<Block> {
        let mut chosen = Vec::new();
        let mut players = 0;
        for block in blocks.by_ref() {
            chosen.push(block);
            players += self.histogram.players_in(block);
            if players >= rows as u64 || chosen.len() == BLOCKS_AT_ONCE_MAX {
                break;
            }
        }
        chosen
    }

    fn range(&self, block: Block, behind: Option<&Place>, direction: Direction, limit: usize) -> Range {
        let sort = match (behind.map(|place| order_rank(place.rating, &place.player_id)), direction) {
            (None, _) => Sort::All,
            (Some(rank), Direction::Ascending) => Sort::Above(rank),
            (Some(rank), Direction::Descending) => Sort::Below(rank),
        };
        let partition = order_partition(self.time_control, block);
        Range { table: Table::Views, index: Some(ORDER), partition, sort, direction, limit: Some(limit) }
    }

    async fn add_counters(&mut self, keys: &[Key]) -> Result<(), StoreError> {
        for (_, item) in self.store.items(keys).await? {
            self.histogram.add_item(counters(&item));
        }
        Ok(())
    }
}

fn counters(item: &Item) -> impl Iterator<Item = (&str, i64)> {
    item.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_n().ok()?.parse().ok()?)))
}

fn decode(item: Item) -> Result<BoardRow, Problem> {
    let (key, row) = items::row(Table::Views, item).map_err(|error| Problem::internal(&error))?;
    let decoded = row.decode::<BoardRow>(&key)?;
    // The index has no rows without its keys, and tombstones have none.
    decoded
        .ok_or_else(|| Problem::internal(&items::ItemError::Attribute { attribute: ORDER_RANK, item: key.to_string() }))
}
