//! Games to be replayed, in the order in which they ended.

use events::{GameId, GameResult, PlayerId, TimeControl, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

/// The bundled real games: rated games of 2019 to 2022 from the Lichess open database (CC0), player names replaced.
const REAL_GAMES: &str = include_str!("../../../../tests/data/rated-games.csv");

/// A game that has ended, with both players' new ratings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Game {
    /// Which game.
    pub(super) game_id: GameId,
    /// Which leaderboard it counts for.
    pub(super) time_control: TimeControl,
    /// When it ended.
    pub(super) ended_at: Timestamp,
    /// How it ended.
    pub(super) result: GameResult,
    /// Player of the white side and the rating after the game.
    pub(super) white: (PlayerId, i64),
    /// Player of the black side and the rating after the game.
    pub(super) black: (PlayerId, i64),
}

/// A line of the bundled file: ratings are those before the game, and how they changed.
#[derive(Deserialize)]
struct Line {
    ended_at: Timestamp,
    game_id: GameId,
    time_control: TimeControl,
    white: PlayerId,
    black: PlayerId,
    result: GameResult,
    white_rating_before: i64,
    white_diff: i64,
    black_rating_before: i64,
    black_diff: i64,
}

impl Game {
    /// Returns both sides.
    pub(super) fn sides(&self) -> [&(PlayerId, i64); 2] {
        [&self.white, &self.black]
    }

    /// Returns the body of the request that ends the game.
    pub(super) fn command(&self) -> Value {
        let side = |(player_id, rating): &(PlayerId, i64)| json!({"player_id": player_id, "rating": rating});
        json!({
            "game_id": self.game_id,
            "time_control": self.time_control,
            "ended_at": self.ended_at,
            "result": self.result,
            "white": side(&self.white),
            "black": side(&self.black),
        })
    }
}

/// Reads the bundled real games.
///
/// # Errors
///
/// A line is not what the file's header says; the error names line and column.
pub(super) fn real_games() -> Result<Vec<Game>, csv::Error> {
    games(REAL_GAMES)
}

fn games(text: &str) -> Result<Vec<Game>, csv::Error> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut games = reader.deserialize().map(|line| line.map(game)).collect::<Result<Vec<Game>, csv::Error>>()?;
    games.sort_by_key(|game| game.ended_at);
    Ok(games)
}

fn game(line: Line) -> Game {
    Game {
        game_id: line.game_id,
        time_control: line.time_control,
        ended_at: line.ended_at,
        result: line.result,
        white: (line.white, line.white_rating_before + line.white_diff),
        black: (line.black, line.black_rating_before + line.black_diff),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_file_has_its_684_games_in_order() {
        let games = real_games().unwrap();
        assert_eq!(games.len(), 684);
        assert!(games.is_sorted_by_key(|game| game.ended_at));
        assert_eq!(games[0].white, ("player-a1cfca0b".parse().unwrap(), 1672));
        assert_eq!(games[0].black, ("player-49ffa399".parse().unwrap(), 1383));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let header = REAL_GAMES.lines().next().unwrap();
        for line in ["2019-09-01T01:05:32Z,g,checkers,a,b,1-0,1,1,1,1", "2019-09-01T01:05:32Z,g,blitz"] {
            let error = games(&format!("{header}\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains("line: 2"), "{error}");
        }
    }
}
