//! Whoever takes letters: a webhook that fails, hangs or loses its answer like any other, and remembers what has arrived under
//! which key.

use std::collections::BTreeMap;

use consumer::NotifyError;
use domain::inbox::Letter;
use domain::players::{Player, Visibility};
use events::{PlayerId, Timestamp};

use super::core::Core;
use super::hazards::Hazard;
use super::instances::InvocationId;
use super::slot::Slot;

/// What was sent, and who was restricted when.
#[derive(Debug, Default)]
pub(super) struct Letters {
    /// How often a letter has arrived, by key.
    pub(super) arrived: BTreeMap<String, u32>,
    /// Letters that were sent although, when their sender last read, somebody concerned was restricted.
    pub(super) forbidden: Vec<Letter>,
    /// From when on a player was visible, or hidden.
    visibility: BTreeMap<PlayerId, Vec<(Timestamp, Visibility)>>,
}

impl Letters {
    /// Notes whether a player is visible from now on.
    pub(super) fn note_visibility(&mut self, player: &Player, now: Timestamp) {
        self.visibility.entry(player.player_id.clone()).or_default().push((now, player.visibility()));
    }

    /// Whether a player was hidden just before a moment and at it: what changes at that moment may have been read or not.
    fn was_hidden(&self, player_id: &PlayerId, moment: Timestamp) -> bool {
        let changes = self.visibility.get(player_id).map(Vec::as_slice).unwrap_or_default();
        let before = changes.iter().rfind(|(since, _)| *since < moment);
        let hidden = before.is_some_and(|(_, visibility)| *visibility == Visibility::Hidden);
        hidden && !changes.iter().any(|(since, visibility)| *since == moment && *visibility == Visibility::Visible)
    }
}

impl Core {
    /// Takes a letter on its way.
    pub(super) fn send_letter(
        &mut self,
        id: InvocationId,
        key: &str,
        letter: &Letter,
        slot: Slot<Result<(), NotifyError>>,
    ) {
        let read_at = self.last_read(id);
        if !self.sends(id) {
            return;
        }
        for player in [&letter.recipient_id, letter.cause.actor()] {
            if self.history.letters.was_hidden(player, read_at) {
                self.history.letters.forbidden.push(letter.clone());
            }
        }
        let latency = self.latency();
        let failed = |reason: &str| Err(NotifyError { reason: reason.to_owned() });
        if self.strikes(Hazard::LetterRefused) {
            self.after(latency, move |_| slot.fill(failed("refused")));
        } else if !self.strikes(Hazard::LetterHangs) {
            let lost = self.strikes(Hazard::LetterAnswerLost);
            let key = key.to_owned();
            self.after(latency, move |core| {
                core.note(|_| format!("letter {key} arrives"));
                *core.history.letters.arrived.entry(key).or_default() += 1;
                slot.fill(if lost { failed("no answer") } else { Ok(()) });
            });
        }
    }
}
