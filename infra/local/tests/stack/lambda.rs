//! Instances of a function: when they start, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use futures::FutureExt;
use local::lambda::{Functions, InvokeError, PAYLOAD_BYTES_MAX, RESPONSE_BYTES_MAX, Scaling};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::runtime::{Answer, Init, Runtimes, eventually, function, functions, scaling};

async fn invoke(functions: &Functions, event: &Value) -> Result<String, InvokeError> {
    let response = functions.invoke("function", event.to_string().into()).await?;
    Ok(String::from_utf8(response.to_vec()).unwrap())
}

fn echo() -> Arc<Runtimes> {
    Runtimes::new(|event| async move { Answer::json(&event) })
}

fn instances(functions: &Functions) -> usize {
    functions.counters()["function"].instances
}

#[tokio::test]
async fn without_work_there_is_no_instance_and_work_in_turn_needs_one() {
    let runtimes = echo();
    let functions = functions(&runtimes);
    assert_eq!(instances(&functions), 0);

    for number in 0..5 {
        let event = json!({ "number": number });
        assert_eq!(invoke(&functions, &event).await, Ok(event.to_string()));
    }

    assert_eq!(runtimes.launches.load(Ordering::SeqCst), 1);
    let counters = functions.counters()["function"];
    assert_eq!((counters.instances, counters.starts, counters.invocations, counters.errors), (1, 1, 5, 0));
}

#[tokio::test]
async fn work_at_the_same_time_needs_instances_up_to_the_limit() {
    let open = Arc::new(Semaphore::new(0));
    let working = Arc::new(AtomicUsize::new(0));
    let runtimes = Runtimes::new({
        let (open, working) = (Arc::clone(&open), Arc::clone(&working));
        move |event| {
            let (open, working) = (Arc::clone(&open), Arc::clone(&working));
            async move {
                working.fetch_add(1, Ordering::SeqCst);
                open.acquire().await.unwrap().forget();
                Answer::json(&event)
            }
        }
    });
    let limited = Scaling { instances_max: 3, ..scaling(runtimes) };
    let functions = Arc::new(Functions::new(&[function(Duration::from_secs(10))], &limited));

    let invocations: Vec<_> = (0..5)
        .map(|number| {
            let functions = Arc::clone(&functions);
            tokio::spawn(async move { invoke(&functions, &json!(number)).await })
        })
        .collect();
    eventually("three at work", || working.load(Ordering::SeqCst) == 3).await;
    let counters = functions.counters()["function"];
    assert_eq!((counters.instances, counters.in_flight, counters.waiting), (3, 3, 2));

    open.add_permits(5);
    for (number, invocation) in invocations.into_iter().enumerate() {
        assert_eq!(invocation.await.unwrap(), Ok(number.to_string()));
    }
    assert_eq!(instances(&functions), 3);
}

#[tokio::test]
async fn idle_instances_are_stopped_and_the_next_work_starts_a_new_one() {
    let runtimes = echo();
    let short = Scaling { idle: Duration::from_millis(50), ..scaling(Arc::clone(&runtimes) as _) };
    let functions = Functions::new(&[function(Duration::from_secs(10))], &short);

    assert!(invoke(&functions, &json!(1)).await.is_ok());
    eventually("no instance", || instances(&functions) == 0).await;
    assert!(invoke(&functions, &json!(2)).await.is_ok());

    assert_eq!(runtimes.launches.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_invocation_that_takes_too_long_fails_and_its_instance_is_killed() {
    let runtimes = Runtimes::new(|event| async move { if event == 1 { Answer::Never } else { Answer::json(&event) } });
    let limit = Duration::from_millis(100);
    let functions = Functions::new(&[function(limit)], &scaling(Arc::clone(&runtimes) as _));

    let error = invoke(&functions, &json!(1)).await.unwrap_err();

    assert!(matches!(&error, InvokeError::Timeout { limit: reported, .. } if *reported == limit), "{error}");
    assert_eq!(error.error_type(), "Sandbox.Timedout");
    eventually("no instance", || instances(&functions) == 0).await;
    assert_eq!(invoke(&functions, &json!(2)).await, Ok("2".to_owned()));
    assert_eq!(runtimes.launches.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_process_that_dies_during_an_invocation_fails_it() {
    let runtimes = Runtimes::new(|event| async move {
        if event == 1 { Answer::Exit("exit status: 101") } else { Answer::json(&event) }
    });
    let functions = functions(&runtimes);

    let error = invoke(&functions, &json!(1)).await.unwrap_err();

    assert!(matches!(&error, InvokeError::Exit { exit, .. } if exit == "exit status: 101"), "{error}");
    assert_eq!(error.error_type(), "Runtime.ExitError");
    assert_eq!(invoke(&functions, &json!(2)).await, Ok("2".to_owned()));
}

#[tokio::test]
async fn an_instance_killed_from_outside_fails_its_invocation_only() {
    let runtimes = Runtimes::new(|event| async move { if event == 1 { Answer::Never } else { Answer::json(&event) } });
    let functions = Arc::new(functions(&runtimes));
    let invocation = tokio::spawn({
        let functions = Arc::clone(&functions);
        async move { invoke(&functions, &json!(1)).await }
    });
    eventually("an invocation under way", || instances(&functions) == 1).await;

    let mut random = fastrand::Rng::with_seed(1);
    let killed = functions.kill_random(&mut random);

    assert_eq!(killed.as_deref(), Some("function"));
    // Killed before or after it took the work: the work then is done elsewhere, and is killed there.
    eventually("the end of the invocation", || {
        functions.kill_random(&mut random);
        invocation.is_finished()
    })
    .await;
    assert!(matches!(invocation.await.unwrap(), Err(InvokeError::Exit { .. } | InvokeError::InitExit { .. })));
    eventually("a new instance", || functions.kill_random(&mut random).is_none()).await;
    assert_eq!(invoke(&functions, &json!(2)).await, Ok("2".to_owned()));
}

#[tokio::test]
async fn an_idle_instance_that_was_killed_is_replaced_without_a_failure() {
    let runtimes = echo();
    let functions = functions(&runtimes);
    let mut random = fastrand::Rng::with_seed(1);

    for number in 0..5 {
        assert_eq!(invoke(&functions, &json!(number)).await, Ok(number.to_string()));
        assert!(functions.kill_random(&mut random).is_some());
    }

    assert_eq!(functions.counters()["function"].errors, 0);
    assert_eq!(runtimes.launches.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn an_error_of_the_function_is_the_callers_and_the_instance_lives_on() {
    let runtimes = Runtimes::new(|event| async move {
        if event == 1 {
            Answer::Error { error_type: "Table.Missing", message: "no table" }
        } else {
            Answer::json(&event)
        }
    });
    let functions = functions(&runtimes);

    let error = invoke(&functions, &json!(1)).await.unwrap_err();

    assert_eq!(error.error_type(), "Table.Missing");
    assert_eq!(error.to_string(), "function: Table.Missing: no table");
    assert_eq!(invoke(&functions, &json!(2)).await, Ok("2".to_owned()));
    assert_eq!(runtimes.launches.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn failed_initialisations_say_why_and_do_not_spin() {
    let check = |init: Init, error_type: &'static str, text: &'static str| async move {
        let runtimes = Runtimes::with_init(init, |event| async move { Answer::json(&event) });
        let quick = Scaling { init_timeout: Duration::from_millis(100), ..scaling(Arc::clone(&runtimes) as _) };
        let functions = Functions::new(&[function(Duration::from_secs(10))], &quick);

        for _ in 0..20 {
            let error = invoke(&functions, &json!(1)).await.unwrap_err();
            assert_eq!(error.error_type(), error_type, "{init:?}");
            assert!(error.to_string().contains(text), "{init:?}: {error}");
        }

        let launches = runtimes.launches.load(Ordering::SeqCst);
        assert!((2..10).contains(&launches), "{init:?}: {launches} launches");
        eventually("no instance", || instances(&functions) == 0).await;
    };

    check(Init::Reports, "Config.Missing", "TABLE is not set").await;
    check(Init::Exits, "Runtime.ExitError", "exit status: 101").await;
    check(Init::Hangs, "Sandbox.Timedout", "did not ask for work").await;
}

#[tokio::test]
async fn payloads_over_the_limit_fail_alone() {
    let runtimes = Runtimes::new(|event| async move {
        let length = usize::try_from(event.as_u64().unwrap()).unwrap();
        Answer::Response("7".repeat(length))
    });
    let functions = functions(&runtimes);

    let event = Bytes::from(vec![b'7'; PAYLOAD_BYTES_MAX + 1]);
    let too_large = functions.invoke("function", event).await.unwrap_err();
    assert!(matches!(too_large, InvokeError::PayloadTooLarge { .. }), "{too_large}");
    let too_large = invoke(&functions, &json!(RESPONSE_BYTES_MAX + 1)).await.unwrap_err();
    assert_eq!(too_large.error_type(), "Function.ResponseSizeTooLarge");
    assert_eq!(invoke(&functions, &json!(RESPONSE_BYTES_MAX)).await.map(|body| body.len()), Ok(RESPONSE_BYTES_MAX));
}

#[tokio::test]
async fn an_invocation_goes_on_when_nobody_waits_for_it() {
    let done = Arc::new(AtomicUsize::new(0));
    let runtimes = Runtimes::new({
        let done = Arc::clone(&done);
        move |event| {
            let done = Arc::clone(&done);
            async move {
                done.fetch_add(1, Ordering::SeqCst);
                Answer::json(&event)
            }
        }
    });
    let functions = functions(&runtimes);

    assert_eq!(invoke(&functions, &json!(1)).now_or_never(), None);

    eventually("the invocation's end", || functions.counters()["function"].invocations == 1).await;
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_stopped_stack_invokes_nothing() {
    let runtimes = echo();
    let functions = functions(&runtimes);
    assert!(invoke(&functions, &json!(1)).await.is_ok());

    functions.stop();

    assert!(matches!(invoke(&functions, &json!(2)).await, Err(InvokeError::Stopping { .. })));
    eventually("no instance", || instances(&functions) == 0).await;
    let unknown = functions.invoke("other", Bytes::new()).await;
    assert_eq!(unknown, Err(InvokeError::UnknownFunction { function: "other".to_owned() }));
}
