//! Generated games: seeded, with the skew of real play. A few players play most games, blitz is played most, ratings follow
//! results.

use std::collections::BTreeMap;
use std::time::Duration;

use events::{GameId, GameResult, PlayerId, TimeControl, Timestamp};
use fastrand::Rng;

use super::game::Game;

/// Rating of a player who has not played yet.
const FIRST_RATING: i64 = 1_500;
/// Points that a game moves at most
/// (Elo's K, [FIDE Handbook B.02, 8.3.3](https://handbook.fide.com/chapter/B022024)).
const K: f64 = 40.0;
/// Share of games that are drawn.
const DRAWS: f64 = 0.06;
/// How many of a hundred games are of each time control, in the order of [`TimeControl::ALL`].
const SHARES: [u32; 5] = [28, 40, 22, 7, 3];
/// Time between two games' ends.
const GAP: Duration = Duration::from_millis(1_700);

/// Generates games between `players` players, the last of which ends before `until`.
pub(super) fn generated_games(players: u32, games: u32, until: Timestamp, seed: u64) -> Vec<Game> {
    let mut rng = Rng::with_seed(seed);
    let mut ratings: BTreeMap<(u32, TimeControl), f64> = BTreeMap::new();
    let span = GAP * games;
    let start = until.as_millis() - i64::try_from(span.as_millis()).unwrap_or(0);
    (0..games)
        .map(|number| {
            let time_control = time_control(&mut rng);
            let white = player(&mut rng, players);
            let black = opponent(&mut rng, players, white);
            let before = |player| ratings.get(&(player, time_control)).copied().unwrap_or(FIRST_RATING as f64);
            let (white_before, black_before) = (before(white), before(black));
            let expected = 1.0 / (1.0 + 10_f64.powf((black_before - white_before) / 400.0));
            let (result, score) = result(&mut rng, expected);
            let change = K * (score - expected);
            let white_after = (white_before + change).clamp(0.0, 4_000.0);
            let black_after = (black_before - change).clamp(0.0, 4_000.0);
            ratings.insert((white, time_control), white_after);
            ratings.insert((black, time_control), black_after);
            Game {
                game_id: GameId::derived(&format!("{seed}/{number}")),
                time_control,
                ended_at: Timestamp::from_millis(start) + GAP * number,
                result,
                white: (player_id(white), white_after.round() as i64),
                black: (player_id(black), black_after.round() as i64),
            }
        })
        .collect()
}

/// Squaring a uniform number makes the first hundredth of the players play a tenth of the games.
fn player(rng: &mut Rng, players: u32) -> u32 {
    let position = rng.f64();
    ((position * position * f64::from(players)) as u32).min(players - 1)
}

fn opponent(rng: &mut Rng, players: u32, white: u32) -> u32 {
    let black = player(rng, players);
    if black == white { (black + 1) % players } else { black }
}

/// Returns the id of a generated player.
pub(super) fn player_id(number: u32) -> PlayerId {
    PlayerId::derived(&format!("player {number}"))
}

fn time_control(rng: &mut Rng) -> TimeControl {
    let mut share = rng.u32(0..SHARES.iter().sum());
    for (time_control, its_share) in TimeControl::ALL.into_iter().zip(SHARES) {
        if share < its_share {
            return time_control;
        }
        share -= its_share;
    }
    TimeControl::Blitz
}

fn result(rng: &mut Rng, expected: f64) -> (GameResult, f64) {
    if rng.f64() < DRAWS {
        (GameResult::Draw, 0.5)
    } else if rng.f64() < expected {
        (GameResult::WhiteWins, 1.0)
    } else {
        (GameResult::BlackWins, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_games() {
        let until = Timestamp::from_millis(1_796_000_000_000);
        assert_eq!(generated_games(50, 200, until, 7), generated_games(50, 200, until, 7));
        assert_ne!(generated_games(50, 200, until, 7), generated_games(50, 200, until, 8));
    }

    #[test]
    fn games_are_valid_and_skewed_and_fill_all_boards() {
        let until = Timestamp::from_millis(1_796_000_000_000);
        let games = generated_games(10_000, 20_000, until, 1);
        assert!(games.iter().all(|game| game.white.0 != game.black.0 && game.ended_at < until));
        assert!(games.iter().flat_map(Game::sides).all(|(_, rating)| (0..=4_000).contains(rating)));
        let boards: BTreeSet<TimeControl> = games.iter().map(|game| game.time_control).collect();
        assert_eq!(boards.len(), 5);
        let mut played: BTreeMap<&PlayerId, u32> = BTreeMap::new();
        for (player, _) in games.iter().flat_map(Game::sides) {
            *played.entry(player).or_default() += 1;
        }
        let mut counts: Vec<u32> = played.values().copied().collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        assert!(counts.iter().take(100).sum::<u32>() >= 3_600, "the busiest hundred play a tenth");
    }

    #[test]
    fn two_players_are_enough() {
        let games = generated_games(2, 50, Timestamp::from_millis(1_796_000_000_000), 1);
        assert!(games.iter().all(|game| game.white.0 != game.black.0));
    }
}
