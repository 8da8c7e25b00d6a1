//! Histories of games, and the ways in which they can be delivered.

use std::collections::BTreeMap;
use std::time::Duration;

use events::{Event, GameResult, Payload, TimeControl};
use proptest::prelude::*;
use testkit::Fault;
use testkit::sample::game_ended;

/// Players of a history.
pub const PLAYERS: u32 = 6;
const GAMES_MAX: usize = 40;

/// A history and its delivery: every game at least once.
#[derive(Debug, Clone)]
pub struct Run {
    pub games: Vec<Event>,
    pub deliveries: Vec<Delivered>,
}

/// What happens next.
#[derive(Debug, Clone)]
pub enum Delivered {
    /// A batch of games, by index.
    Batch(Vec<usize>),
    /// Something that goes wrong with one of the next calls.
    Fault(Fault),
}

pub fn run() -> impl Strategy<Value = Run> {
    prop::collection::vec(game(), 1..GAMES_MAX).prop_flat_map(|games| {
        let games = history(&games);
        let count = games.len();
        let repeats = prop::collection::vec(0..count, 0..count);
        let order = repeats.prop_flat_map(move |repeats| {
            let all: Vec<usize> = (0..count).chain(repeats).collect();
            Just(all).prop_shuffle()
        });
        let cuts = prop::collection::vec(1..12_usize, count * 2);
        let faults = prop::collection::vec(prop::option::weighted(0.3, fault()), count * 2);
        (Just(games), order, cuts, faults)
            .prop_map(|(games, order, cuts, faults)| Run { games, deliveries: batches(&order, &cuts, faults) })
    })
}

pub fn game() -> impl Strategy<Value = Drawn> {
    let pair = (0..PLAYERS, 1..PLAYERS);
    (pair, 0..3_u8, 0..2_u8, 1_400..1_700_u16, 0..=4_000_u16, 0..72_u64)
}

/// A game as it is drawn: white and the distance to black, result, board, both ratings, hours after the first moment.
pub type Drawn = ((u32, u32), u8, u8, u16, u16, u64);

/// Numbers every player's games in order, as the request path does.
pub fn history(games: &[Drawn]) -> Vec<Event> {
    let mut played: BTreeMap<(u32, TimeControl), u64> = BTreeMap::new();
    games
        .iter()
        .zip(1..)
        .map(|(((white, step), result, board, white_rating, black_rating, hours), number)| {
            let black = (white + step) % PLAYERS;
            let time_control = TimeControl::ALL[usize::from(*board)];
            let mut count = |player| {
                let games = played.entry((player, time_control)).or_default();
                *games += 1;
                *games
            };
            let mut event =
                game_ended(number, (*white, *white_rating, count(*white)), (black, *black_rating, count(black)));
            event.occurred_at = event.occurred_at + Duration::from_hours(*hours);
            let Payload::GameEnded(game) = &mut event.payload else { panic!("no game: {event:?}") };
            game.time_control = time_control;
            game.result = [GameResult::WhiteWins, GameResult::BlackWins, GameResult::Draw][usize::from(*result)];
            event
        })
        .collect()
}

fn batches(order: &[usize], cuts: &[usize], faults: Vec<Option<Fault>>) -> Vec<Delivered> {
    let mut deliveries = Vec::new();
    let mut rest = order;
    for (size, fault) in cuts.iter().zip(faults) {
        let (batch, others) = rest.split_at(rest.len().min(*size));
        if !batch.is_empty() {
            deliveries.extend(fault.map(Delivered::Fault));
            deliveries.push(Delivered::Batch(batch.to_vec()));
        }
        rest = others;
    }
    deliveries
}

pub fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::AnswerLost),
        Just(Fault::Throttled),
        Just(Fault::Conflict),
        Just(Fault::Unprocessed),
        Just(Fault::Unreadable)
    ]
}
