//! The histograms are a count of the boards' visible rows, in both their levels.

use std::collections::BTreeMap;

use domain::leaderboard::{Block, HISTOGRAM_SPREAD, Histogram, block_key, top_key};
use domain::players::Visibility;
use events::{Rating, TimeControl};

use super::super::core::Core;
use super::{Broken, boards, compare};

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let rows = boards::rows(core)?;
    for board in TimeControl::ALL {
        let mut counted: BTreeMap<(TimeControl, u16), i64> = BTreeMap::new();
        let visible = rows.iter().filter(|(_, row)| row.visibility() == Visibility::Visible);
        for (_, row) in visible.filter(|((of, _), _)| *of == board) {
            *counted.entry((board, row.rating.points())).or_default() += 1;
        }
        let histogram = read(core, board);
        let cells = histogram.cells().map(|(rating, players)| ((board, rating), players)).collect();
        compare(&cells, &counted, |(board, _)| core.history.concerning(&top_key(*board).partition))?;
        for block in Block::descending() {
            let ratings = counted.iter().filter(|((_, rating), _)| block_of(*rating) == Some(block));
            let players: i64 = ratings.map(|(_, players)| players).sum();
            if i64::try_from(histogram.players_in(block)) != Ok(players) {
                let total = histogram.players_in(block);
                let what = format!("block {} of {board} counts {total} players instead of {players}", block.number());
                return Err(Broken { what, about: core.history.concerning(&top_key(board).partition) });
            }
        }
    }
    Ok(())
}

fn block_of(rating: u16) -> Option<Block> {
    Rating::try_from(i64::from(rating)).ok().map(Block::of)
}

fn read(core: &Core, board: TimeControl) -> Histogram {
    let mut histogram = Histogram::default();
    let targets = std::iter::once(top_key(board)).chain(Block::descending().map(|block| block_key(board, block)));
    for key in targets.flat_map(|target| HISTOGRAM_SPREAD.keys(&target)) {
        let counters = core.ledger.row(&key).attributes.unwrap_or_default();
        histogram.add_item(counters.iter().filter_map(|(name, count)| Some((name.as_str(), count.as_i64()?))));
    }
    histogram
}
