//! What games and changes of players come to when they are folded in order: an account of its own, which shares no code with
//! the consumers.

use std::collections::{BTreeMap, BTreeSet};

use events::{GameResult, PlayerId, TimeControl};

use super::changes::{PlayerChange, Step};
use super::game::Game;

/// A board's histogram: players by rating.
pub(super) type Cells = BTreeMap<i64, i64>;

/// A player's results: won, drawn, lost.
pub(super) type Results = [i64; 3];

/// Everything that the stack should show in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fold {
    /// By time control and player: rating and number of games.
    pub(super) boards: BTreeMap<TimeControl, BTreeMap<PlayerId, (i64, i64)>>,
    /// By player, for those whose record was changed.
    pub(super) profiles: BTreeMap<PlayerId, Profile>,
    /// By player and time control.
    pub(super) totals: BTreeMap<(PlayerId, TimeControl), Results>,
    /// By player, time control and day.
    pub(super) days: BTreeMap<(PlayerId, TimeControl, String), Results>,
}

/// A player as others see one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Profile {
    /// The name, unless it is the id.
    pub(super) name: Option<String>,
    /// Whether nobody sees the player.
    pub(super) hidden: bool,
}

impl Fold {
    /// Folds games that are in order.
    pub(super) fn of(games: &[Game]) -> Self {
        let mut fold = Self::default();
        for game in games {
            let (white, black) = match game.result {
                GameResult::WhiteWins => ([1, 0, 0], [0, 0, 1]),
                GameResult::BlackWins => ([0, 0, 1], [1, 0, 0]),
                GameResult::Draw => ([0, 1, 0], [0, 1, 0]),
            };
            let day = game.ended_at.day().to_string();
            for ((player, rating), result) in [(&game.white, white), (&game.black, black)] {
                let place = fold.boards.entry(game.time_control).or_default().entry(player.clone()).or_default();
                *place = (*rating, place.1 + 1);
                let totals = fold.totals.entry((player.clone(), game.time_control)).or_default();
                let days = fold.days.entry((player.clone(), game.time_control, day.clone())).or_default();
                for counters in [totals, days] {
                    counters.iter_mut().zip(result).for_each(|(counter, one)| *counter += one);
                }
            }
        }
        fold
    }

    /// Folds changes of players in.
    pub(super) fn with_changes(mut self, changes: &[PlayerChange]) -> Self {
        for change in changes {
            let profile = self.profiles.entry(change.player_id.clone()).or_default();
            match &change.step {
                Step::Rename(name) => profile.name = Some(name.clone()),
                Step::Restrict => profile.hidden = true,
                Step::Reinstate => profile.hidden = false,
            }
        }
        self
    }

    /// Returns the name that a player goes by.
    pub(super) fn name(&self, player_id: &PlayerId) -> String {
        let name = self.profiles.get(player_id).and_then(|profile| profile.name.clone());
        name.unwrap_or_else(|| player_id.to_string())
    }

    /// Returns whether nobody sees a player.
    pub(super) fn is_hidden(&self, player_id: &PlayerId) -> bool {
        self.profiles.get(player_id).is_some_and(|profile| profile.hidden)
    }

    /// Returns a board as it is shown.
    pub(super) fn board(&self, time_control: TimeControl) -> BTreeMap<PlayerId, (i64, i64)> {
        let rows = self.boards.get(&time_control).into_iter().flatten();
        rows.filter(|(player_id, _)| !self.is_hidden(player_id)).map(|(id, row)| (id.clone(), *row)).collect()
    }

    /// Returns all players.
    pub(super) fn players(&self) -> BTreeSet<&PlayerId> {
        self.boards.values().flat_map(BTreeMap::keys).collect()
    }

    /// Returns a board's histogram.
    pub(super) fn histogram(&self, time_control: TimeControl) -> Cells {
        let mut cells = Cells::new();
        for (rating, _) in self.board(time_control).into_values() {
            *cells.entry(rating).or_default() += 1;
        }
        cells
    }

    /// Returns the rank of every rating of a board: 1 + the number of players with a higher one.
    pub(super) fn ranks(&self, time_control: TimeControl) -> BTreeMap<i64, i64> {
        let mut higher = 0;
        let mut ranks = BTreeMap::new();
        for (rating, players) in self.histogram(time_control).into_iter().rev() {
            ranks.insert(rating, higher + 1);
            higher += players;
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(number: i64, result: GameResult, white: (&str, i64), black: (&str, i64)) -> Game {
        let side = |(player, rating): (&str, i64)| (player.parse().unwrap(), rating);
        Game {
            game_id: format!("g{number}").parse().unwrap(),
            time_control: TimeControl::Blitz,
            ended_at: events::Timestamp::from_millis(1_700_000_000_000 + number),
            result,
            white: side(white),
            black: side(black),
        }
    }

    #[test]
    fn the_last_game_says_the_rating_and_ties_share_a_rank() {
        let fold = Fold::of(&[
            game(1, GameResult::WhiteWins, ("a", 1510), ("b", 1490)),
            game(2, GameResult::Draw, ("b", 1500), ("c", 1500)),
            game(3, GameResult::BlackWins, ("d", 1400), ("c", 1500)),
        ]);
        let a = "a".parse().unwrap();
        let b: PlayerId = "b".parse().unwrap();
        let board = &fold.boards[&TimeControl::Blitz];
        assert_eq!((board[&a], board[&b]), ((1510, 1), (1500, 2)));
        assert_eq!(fold.ranks(TimeControl::Blitz), BTreeMap::from([(1510, 1), (1500, 2), (1400, 4)]));
        assert_eq!(fold.totals[&(b, TimeControl::Blitz)], [0, 1, 1]);
        assert_eq!(fold.players().len(), 4);
    }

    #[test]
    fn the_hidden_have_no_rank_and_take_none() {
        let change = |player: &str, step| PlayerChange { player_id: player.parse().unwrap(), step, after_games: 0 };
        let fold = Fold::of(&[
            game(1, GameResult::WhiteWins, ("a", 1510), ("b", 1490)),
            game(2, GameResult::Draw, ("c", 1500), ("d", 1480)),
        ]);
        let fold = fold.with_changes(&[
            change("a", Step::Restrict),
            change("b", Step::Rename("Bea".to_owned())),
            change("c", Step::Restrict),
            change("c", Step::Reinstate),
        ]);
        assert_eq!(fold.ranks(TimeControl::Blitz), BTreeMap::from([(1500, 1), (1490, 2), (1480, 3)]));
        assert_eq!((fold.name(&"b".parse().unwrap()), fold.name(&"a".parse().unwrap())), ("Bea".into(), "a".into()));
        assert_eq!(fold.players().len(), 4);
    }
}
