//! What can go wrong in a world, and how often.

use std::collections::BTreeMap;

use fastrand::Rng;

/// One kind of thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hazard {
    /// A client repeats a command that was answered.
    CommandRepeated,
    /// An order's event comes into the store only after those behind it.
    EventWithheld,
    /// The relay dies after it has sent a part of its batch.
    RelayCrash,
    /// The relay's answer is lost after it has sent its batch.
    RelayAnswerLost,
    /// A message is sent twice.
    SentTwice,
    /// A message becomes visible later than others that were sent after it.
    Delayed,
    /// A message is delivered and stays visible, so that someone else gets it too.
    DeliveredTwice,
    /// A batch arrives in another order.
    Shuffled,
    /// An instance dies before it sends a request.
    CrashBeforeRequest,
    /// An instance dies after it has sent a request.
    CrashAfterRequest,
    /// An instance stands still for seconds, or beyond the visibility timeout, and then goes on.
    Frozen,
    /// A request takes seconds instead of milliseconds.
    Slow,
    /// A commit takes effect, but its answer is lost.
    AnswerLost,
    /// A commit is lost before it takes effect.
    RequestLost,
    /// A commit takes effect only after its sender has given it up.
    LateEffect,
    /// A request is refused for load.
    Throttled,
    /// A commit meets another transaction.
    Conflict,
    /// For seconds or minutes the tables refuse every request.
    Outage,
    /// A read leaves keys unprocessed, which are read later.
    Unprocessed,
    /// A read fails.
    Unreadable,
    /// An instance dies before it can report its batch.
    ReportLost,
    /// A message that was acknowledged is not deleted.
    DeleteLost,
    /// A change of visibility has no effect.
    VisibilityLost,
    /// A body that no consumer can read is sent.
    Poison,
    /// A letter is not taken.
    LetterRefused,
    /// A letter never gets an answer, and does not arrive.
    LetterHangs,
    /// A letter arrives, but its sender does not learn of it.
    LetterAnswerLost,
}

impl Hazard {
    /// All kinds.
    pub const ALL: [Self; 27] = [
        Self::CommandRepeated,
        Self::EventWithheld,
        Self::RelayCrash,
        Self::RelayAnswerLost,
        Self::SentTwice,
        Self::Delayed,
        Self::DeliveredTwice,
        Self::Shuffled,
        Self::CrashBeforeRequest,
        Self::CrashAfterRequest,
        Self::Frozen,
        Self::Slow,
        Self::AnswerLost,
        Self::RequestLost,
        Self::LateEffect,
        Self::Throttled,
        Self::Conflict,
        Self::Outage,
        Self::Unprocessed,
        Self::Unreadable,
        Self::ReportLost,
        Self::DeleteLost,
        Self::VisibilityLost,
        Self::Poison,
        Self::LetterRefused,
        Self::LetterHangs,
        Self::LetterAnswerLost,
    ];
}

/// Highest probability of a hazard at each of its occasions.
const PROBABILITY_MAX: f64 = 0.3;

/// The probabilities of one world. A kind that is missing does not happen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hazards(BTreeMap<Hazard, f64>);

impl Hazards {
    /// Draws probabilities. Every world leaves out about half of the kinds, since some hide what others would show (Groce et
    /// al.: "Swarm testing", ISSTA 2012).
    pub(super) fn drawn(random: &mut Rng) -> Self {
        let mut hazards = BTreeMap::new();
        for hazard in Hazard::ALL {
            let (happens, share) = (random.bool(), random.f64());
            if happens {
                hazards.insert(hazard, share * share * PROBABILITY_MAX);
            }
        }
        Self(hazards)
    }

    /// Returns whether the hazard happens on this occasion.
    pub(super) fn strikes(&self, hazard: Hazard, random: &mut Rng) -> bool {
        self.0.get(&hazard).is_some_and(|probability| random.f64() < *probability)
    }
}
