//! The request path: what a command does to the one record that it changes, by the production decisions, in one atomic write
//! with its event. It models the handler's transaction, and its clients, who repeat what they are not sure of.

use domain::follows::{Follow, follow, unfollow};
use domain::games::{EndGame, Game, GameDecision};
use domain::orders::OrderRequest;
use domain::players::{Player, PlayerRating, register, reinstate, rename, restrict};
use domain::posts::{Post, delete, publish};
use domain::reactions::{Reaction, react, unreact};
use domain::{Attributes, Change, Key, State, games};
use events::{CanarySent, Event, EventId, OrderId, Payload, PlayerId, PostId, ReactionKind, TraceId, Username};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::core::Core;
use super::hazards::Hazard;

/// Attribute of a record that holds the event of its last change.
const EVENT: &str = "event";

/// What a client asks for.
#[derive(Debug, Clone)]
pub(super) enum Command {
    Register(PlayerId, Username),
    EndGame(EndGame),
    Rename(PlayerId, Username),
    Restrict(PlayerId),
    Reinstate(PlayerId),
    Publish(PostId, PlayerId),
    Delete(PostId),
    React(PostId, PlayerId, ReactionKind),
    Unreact(PostId, PlayerId),
    Follow(PlayerId, PlayerId),
    Unfollow(PlayerId, PlayerId),
    Order(OrderId, OrderRequest),
    PayByCents(OrderId),
    Canary,
}

impl Core {
    /// Carries out a command, again if its client repeats it.
    pub(super) fn command(&mut self, command: &Command) {
        self.carry_out_command(command);
        // A repeated command on an order answers with the event of its command id, which the world's clients do not have.
        let is_order = matches!(command, Command::Order(..) | Command::PayByCents(_));
        if !is_order && self.strikes(Hazard::CommandRepeated) {
            // Right away: later, another command may have undone it, and the repeat would be a new one.
            self.carry_out_command(command);
        }
    }

    fn carry_out_command(&mut self, command: &Command) {
        let now = self.now;
        match command.clone() {
            Command::Register(player_id, username) => {
                let key = Player::key(&player_id);
                self.change_record(&key, player_id.to_string(), |existing| register(existing, player_id, username));
            }
            Command::EndGame(game) => self.end_game(&game),
            Command::Rename(player_id, username) => {
                self.change_record(&Player::key(&player_id), player_id.to_string(), |player: Option<Player>| {
                    player.map(|player| rename(player, username))
                });
            }
            Command::Restrict(player_id) => {
                self.change_record(&Player::key(&player_id), player_id.to_string(), |player: Option<Player>| {
                    let reason = "spam".parse().ok()?;
                    player.map(|player| restrict(player, reason, now))
                });
            }
            Command::Reinstate(player_id) => {
                self.change_record(&Player::key(&player_id), player_id.to_string(), |player: Option<Player>| {
                    player.map(reinstate)
                });
            }
            Command::Publish(post_id, author_id) => {
                self.change_record(&Post::key(&post_id), post_id.to_string(), |existing| {
                    publish(existing, post_id, author_id, "A text.".parse().ok()?, now).ok()
                });
            }
            Command::Delete(post_id) => {
                self.change_record(&Post::key(&post_id), post_id.to_string(), |post: Option<Post>| post.map(delete));
            }
            Command::React(post_id, player_id, kind) => {
                let key = Reaction::key(&post_id, &player_id);
                self.change_record(&key, format!("{post_id}/{player_id}"), |existing| {
                    Some(react(existing, post_id, player_id, kind))
                });
            }
            Command::Unreact(post_id, player_id) => {
                let key = Reaction::key(&post_id, &player_id);
                self.change_record(&key, format!("{post_id}/{player_id}"), |existing| {
                    Some(unreact(existing, post_id, player_id))
                });
            }
            Command::Follow(follower_id, followed_id) => {
                let key = Follow::key(&followed_id, &follower_id);
                self.change_record(&key, format!("{follower_id}/{followed_id}"), |existing| {
                    Some(follow(existing, followed_id, follower_id, now))
                });
            }
            Command::Order(order_id, request) => self.order(&order_id, &request),
            Command::PayByCents(order_id) => self.pay_by_cents(&order_id),
            Command::Canary => self.change_record(&canary_key(), "canary".to_owned(), |_: Option<Value>| {
                Some(Change::Write { record: json!({}), payload: Payload::CanarySent(CanarySent {}) })
            }),
            Command::Unfollow(follower_id, followed_id) => {
                let key = Follow::key(&followed_id, &follower_id);
                self.change_record(&key, format!("{follower_id}/{followed_id}"), |existing| {
                    Some(unfollow(existing, followed_id, follower_id))
                });
            }
        }
    }

    /// Changes one record and publishes its event, unless the decision is that nothing changes or that it cannot be.
    fn change_record<R: Serialize + DeserializeOwned>(
        &mut self,
        key: &Key,
        aggregate_id: String,
        decide: impl FnOnce(Option<R>) -> Option<Change<R>>,
    ) {
        let row = self.ledger.row(key);
        let Ok(existing) = row.decode::<R>(key) else {
            self.history.refused.push(key.to_string());
            return;
        };
        if let Some(Change::Write { record, payload }) = decide(existing) {
            let event = self.event(aggregate_id, row.version + 1, payload);
            self.put(key.clone(), attributes(&record), Some(&event));
            self.note_player(key);
            self.publish(event);
        }
    }

    /// Notes whether a player is visible from now on, if the record that was written is a player's.
    fn note_player(&mut self, key: &Key) {
        let player = self.ledger.row(key).decode::<Player>(key).ok().flatten();
        if let Some(player) = player.filter(|player| Player::key(&player.player_id) == *key) {
            self.history.letters.note_visibility(&player, self.now);
        }
    }

    fn end_game(&mut self, command: &EndGame) {
        let needs = games::needs(command).into_iter();
        let state: State = needs.map(|key| (key.clone(), self.ledger.row(&key))).collect();
        let (event_id, trace_id) = (self.event_id(), TraceId::mint(self.random.u128(..)));
        match games::decide(command, &state, event_id, trace_id) {
            Ok(GameDecision::Write { game, event, ratings }) => {
                self.put(Game::key(&command.game_id), attributes(&*game), Some(&event));
                for (rating, _) in ratings {
                    self.put(PlayerRating::key(&rating.player_id, rating.time_control), attributes(&rating), None);
                }
                self.publish(*event);
            }
            Ok(GameDecision::Done(_)) => self.note(|_| format!("{} posted again", command.game_id)),
            Ok(GameDecision::Conflict | GameDecision::UnknownPlayer(_)) | Err(_) => {
                self.history.refused.push(command.game_id.to_string());
            }
        }
    }

    pub(super) fn event(&mut self, aggregate_id: String, version: u64, payload: Payload) -> Event {
        let (event_id, trace_id) = (self.event_id(), TraceId::mint(self.random.u128(..)));
        Event { event_id, aggregate_id, version, occurred_at: self.now, trace_id, payload }
    }

    /// Mints an id. The clocks of the hosts of the request path differ, too.
    fn event_id(&mut self) -> EventId {
        let minted_at = self.now + self.millis(0, 2_000);
        let mut random = [0; 10];
        self.random.fill(&mut random);
        EventId::mint(minted_at, random)
    }

    fn put(&mut self, key: Key, mut attributes: Attributes, event: Option<&Event>) {
        attributes.extend(event.map(|event| (EVENT.to_owned(), json!(event))));
        self.remember(&key);
        self.ledger.put(key, attributes);
    }
}

/// The record of canaries, whose function is no client but writes as one does.
fn canary_key() -> Key {
    Key::record("CANARY", "CANARY")
}

fn attributes(record: &impl Serialize) -> Attributes {
    serde_json::to_value(record).and_then(serde_json::from_value).unwrap_or_default()
}
