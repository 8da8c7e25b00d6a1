//! Letters: sent once the row is committed and the truth read again, noted when they are taken, and sent again until then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use consumer::{Driver, EffectDriver, Notifier, NotifyError, Outcome};
use domain::follows::Follow;
use domain::inbox::{Inbox, Letter};
use domain::players::Player;
use domain::{Attributes, Key};
use events::{Consumer, Event, NotificationCause, NotificationId, NotificationRequested, Payload, TraceId};
use serde_json::{Value, json};
use testkit::sample::{event, now, player_id, player_record};
use testkit::{Fault, ManualEnvironment, MemoryLedger, RecordedVisibility};

use crate::support::{Shared, deliveries, names, outcomes};

/// What a receiver does with the next letters; afterwards it takes them.
type Plan = Vec<Answer>;

#[derive(Debug, Clone, Copy)]
enum Answer {
    Fail,
    /// It never answers.
    Hang,
}

/// Somebody who takes letters.
struct Receiver {
    answers: Mutex<Plan>,
    /// What becomes of a record while the first letter is on its way.
    meanwhile: Mutex<Option<(Key, Attributes)>>,
    ledger: Arc<MemoryLedger>,
    letters: Arc<Mutex<BTreeMap<String, Vec<Letter>>>>,
}

impl Notifier<Letter> for Receiver {
    async fn send(&self, key: &str, _: TraceId, letter: &Letter) -> Result<(), NotifyError> {
        if let Some((key, record)) = self.meanwhile.lock().unwrap().take() {
            self.ledger.put(key, record);
        }
        let answer = self.answers.lock().unwrap().pop();
        match answer {
            Some(Answer::Fail) => return Err(NotifyError { reason: "told so".to_owned() }),
            Some(Answer::Hang) => std::future::pending::<()>().await,
            None => {}
        }
        self.letters.lock().unwrap().entry(key.to_owned()).or_default().push(letter.clone());
        Ok(())
    }
}

/// More than two rounds of letters.
const PLAYERS: u32 = 41;
/// Letters that are under way at the same time.
const ROUND: usize = 16;

struct World {
    ledger: Arc<MemoryLedger>,
    driver: EffectDriver<Inbox, Shared, ManualEnvironment, RecordedVisibility, Receiver>,
    letters: Arc<Mutex<BTreeMap<String, Vec<Letter>>>>,
}

impl World {
    /// Players, of whom the others follow the first.
    fn new(answers: Plan) -> Self {
        let ledger = Arc::new(MemoryLedger::default());
        for number in 1..=PLAYERS {
            let (key, record) = player_record(number);
            ledger.put(key, record);
            if number > 1 {
                ledger.put(follow_key(number), follow(number));
            }
        }
        let letters: Arc<Mutex<BTreeMap<String, Vec<Letter>>>> = Arc::default();
        let driver = Driver {
            consumer: Consumer::NotificationRequested,
            decider: Inbox,
            ledger: Shared::of(&ledger),
            environment: ManualEnvironment::new(now(), 5),
            visibility: RecordedVisibility::default(),
        };
        let (answers, meanwhile) = (Mutex::new(answers), Mutex::default());
        let notifier = Some(Receiver { answers, meanwhile, ledger: ledger.clone(), letters: letters.clone() });
        Self { ledger, driver: EffectDriver { driver, notifier, send_timeout: Duration::from_secs(2) }, letters }
    }

    async fn handle(&self, events: &[Event]) -> Vec<Outcome> {
        let deadline = consumer::Clock::now(&self.driver.driver.environment) + Duration::from_secs(30);
        outcomes(&self.driver.handle(&deliveries(events), deadline).await)
    }

    fn delivery(&self, number: u32) -> Option<String> {
        let rows = self.ledger.rows().into_iter();
        let mut own = rows.filter(|(key, _)| key.sort.ends_with(notification_id(number).as_str()));
        own.next().map(|(_, row)| row["delivery"].as_str().unwrap().to_owned())
    }

    fn sent(&self, number: u32) -> usize {
        self.letters.lock().unwrap().get(notification_id(number).as_str()).map_or(0, Vec::len)
    }
}

fn object(value: Value) -> Attributes {
    value.as_object().cloned().unwrap()
}

fn follow_key(follower: u32) -> Key {
    Follow::key(&player_id(1), &player_id(follower))
}

fn follow(follower: u32) -> Attributes {
    object(json!({"followed_id": player_id(1), "follower_id": player_id(follower), "since": now()}))
}

fn restricted(number: u32) -> Attributes {
    let (_, mut record) = player_record(number);
    record.insert("restriction".to_owned(), json!({"reason": "spam", "since": now()}));
    record
}

fn notification_id(follower: u32) -> NotificationId {
    NotificationId::derived(&format!("n {follower}"))
}

/// Player 1 is to be told that this player follows.
fn requested(follower: u32) -> Event {
    let cause = NotificationCause::Follow { follower_id: player_id(follower) };
    let payload =
        NotificationRequested { notification_id: notification_id(follower), recipient_id: player_id(1), cause };
    event(follower, notification_id(follower).as_str(), 1, Payload::NotificationRequested(payload))
}

#[tokio::test]
async fn a_letter_is_sent_once_and_noted() {
    let world = World::new(vec![]);
    assert_eq!(
        names(&world.handle(&[requested(2), requested(3), requested(2)]).await),
        ["applied", "applied", "duplicate"]
    );
    assert_eq!((world.sent(2), world.sent(3)), (1, 1));
    assert_eq!((world.delivery(2).unwrap(), world.delivery(3).unwrap()), ("delivered".into(), "delivered".into()));
    let letter = world.letters.lock().unwrap()[notification_id(2).as_str()][0].clone();
    assert_eq!((letter.recipient_id, letter.occurred_at), (player_id(1), now()));
    assert_eq!(names(&world.handle(&[requested(2)]).await), ["ignored"]);
    assert_eq!(world.sent(2), 1);
}

#[tokio::test]
async fn a_letter_that_is_not_taken_waits_and_keeps_nobody_else_from_theirs() {
    for answer in [Answer::Fail, Answer::Hang] {
        let world = World::new(vec![answer]);
        let first = world.handle(&[requested(2), requested(3)]).await;
        assert_eq!(first.iter().filter(|outcome| outcome.acknowledges()).count(), 1, "{first:?}");
        assert_eq!(world.sent(2) + world.sent(3), 1);
        assert_eq!(world.driver.driver.visibility.take().len(), 1, "the one that failed is hidden for a while");
        let waiting = if world.sent(2) == 0 { 2 } else { 3 };
        assert_eq!(world.delivery(waiting).unwrap(), "pending");
        assert_eq!(names(&world.handle(&[requested(waiting)]).await), ["ignored"]);
        assert_eq!((world.sent(waiting), world.delivery(waiting).unwrap()), (1, "delivered".into()));
    }
}

#[tokio::test]
async fn a_letter_whose_end_was_not_noted_is_sent_again_under_the_same_key() {
    let world = World::new(vec![]);
    // The row is committed; noting that the letter was taken fails for good, as when the function dies.
    world.handle(&[requested(2)]).await;
    let key = domain::inbox::InboxRow::key(&player_id(1), now(), &notification_id(2));
    let mut row = world.ledger.rows()[&key].clone();
    row.insert("delivery".to_owned(), json!("pending"));
    world.ledger.put(key, row);
    assert_eq!(names(&world.handle(&[requested(2)]).await), ["ignored"]);
    assert_eq!((world.sent(2), world.delivery(2).unwrap()), (2, "delivered".into()));
}

#[tokio::test]
async fn nothing_is_sent_while_somebody_concerned_is_restricted() {
    let world = World::new(vec![]);
    world.ledger.put(Player::key(&player_id(2)), restricted(2));
    assert_eq!(names(&world.handle(&[requested(2), requested(3)]).await), ["applied", "applied"]);
    assert_eq!((world.sent(2), world.delivery(2).unwrap()), (0, "suppressed".into()));
    assert_eq!((world.sent(3), world.delivery(3).unwrap()), (1, "delivered".into()));
    world.ledger.put(Player::key(&player_id(1)), restricted(1));
    world.handle(&[requested(4)]).await;
    assert_eq!((world.sent(4), world.delivery(4).unwrap()), (0, "suppressed".into()));
}

#[tokio::test]
async fn a_letter_that_waits_is_dropped_when_it_is_not_so_any_more() {
    let restriction = (Player::key(&player_id(2)), restricted(2));
    let (_, mut ended) = (follow_key(2), follow(2));
    ended.remove("since");
    for (key, record) in [restriction, (follow_key(2), ended)] {
        let world = World::new(vec![Answer::Fail]);
        assert_eq!(names(&world.handle(&[requested(2)]).await), ["retry"]);
        world.ledger.put(key, record);
        assert_eq!(names(&world.handle(&[requested(2)]).await), ["ignored"]);
        assert_eq!((world.sent(2), world.delivery(2).unwrap()), (0, "suppressed".into()));
    }
}

#[tokio::test]
async fn the_truth_is_read_again_before_each_round_of_letters() {
    let world = World::new(vec![]);
    let receiver = world.driver.notifier.as_ref().unwrap();
    *receiver.meanwhile.lock().unwrap() = Some((Player::key(&player_id(1)), restricted(1)));
    let events: Vec<Event> = (2..=PLAYERS).map(requested).collect();
    let outcomes = world.handle(&events).await;
    assert!(outcomes.iter().all(Outcome::acknowledges), "{outcomes:?}");
    let (sent, suppressed) = (2..=PLAYERS).fold((0, 0), |(sent, suppressed), number| {
        (sent + world.sent(number), suppressed + usize::from(world.delivery(number).unwrap() == "suppressed"))
    });
    assert_eq!((sent, suppressed), (ROUND, events.len() - ROUND));
}

#[tokio::test]
async fn whoever_takes_nothing_costs_one_round_a_batch() {
    for answer in [Answer::Fail, Answer::Hang] {
        let world = World::new(vec![answer; PLAYERS as usize]);
        let events: Vec<Event> = (2..=PLAYERS).map(requested).collect();
        let outcomes = world.handle(&events).await;
        assert!(outcomes.iter().all(|outcome| outcome.name() == "retry"), "{outcomes:?}");
        let tried = PLAYERS as usize - world.driver.notifier.as_ref().unwrap().answers.lock().unwrap().len();
        // On a manual clock letters that hang do so one after the other, so that the deadline may come before the round's end.
        assert!((1..=ROUND).contains(&tried), "the others go back without having been tried: {tried}");
        assert!((2..=PLAYERS).all(|number| world.delivery(number).unwrap() == "pending"));
    }
}

#[tokio::test]
async fn one_letter_that_is_taken_keeps_the_others_going() {
    let answers = vec![Answer::Fail; ROUND - 1];
    let world = World::new(answers);
    let events: Vec<Event> = (2..=PLAYERS).map(requested).collect();
    let outcomes = world.handle(&events).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.name() == "retry").count(), ROUND - 1, "{outcomes:?}");
    assert_eq!((2..=PLAYERS).map(|number| world.sent(number)).sum::<usize>(), events.len() - (ROUND - 1));
}

#[tokio::test]
async fn letters_stop_before_the_invocation_does() {
    let world = World::new(vec![Answer::Hang; 5]);
    let deadline = now() + Duration::from_secs(6);
    let report = world.driver.handle(&deliveries(&[requested(2)]), deadline).await;
    assert_eq!(names(&outcomes(&report)), ["retry"]);
    assert_eq!((world.sent(2), world.delivery(2).unwrap()), (0, "pending".into()));
}

#[tokio::test]
async fn without_a_receiver_letters_are_dropped() {
    let mut world = World::new(vec![]);
    world.driver.notifier = None;
    assert_eq!(names(&world.handle(&[requested(2)]).await), ["applied"]);
    assert_eq!(world.delivery(2).unwrap(), "suppressed");
}

#[tokio::test]
async fn a_busy_ledger_loses_no_letter() {
    for fault in [Fault::Unreadable, Fault::Throttled, Fault::AnswerLost, Fault::Conflict] {
        let world = World::new(vec![]);
        world.ledger.inject(fault.clone());
        let mut pending = vec![requested(2), requested(3)];
        for _ in 0..5 {
            let outcomes = world.handle(&pending).await;
            let mut done = outcomes.iter().map(Outcome::acknowledges);
            pending.retain(|_| !done.next().unwrap());
        }
        assert!(pending.is_empty(), "{fault:?}");
        for number in [2, 3] {
            assert!(world.sent(number) >= 1, "{fault:?}");
            assert_eq!(world.delivery(number).unwrap(), "delivered", "{fault:?}");
        }
    }
}
