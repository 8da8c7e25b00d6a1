//! A place where an answer will be: what a simulated instance waits for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
struct State<T> {
    answer: Option<T>,
    waker: Option<Waker>,
}

/// An answer that is still to come. One side fills it, the other one waits.
#[derive(Debug)]
pub(super) struct Slot<T>(Arc<Mutex<State<T>>>);

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { answer: None, waker: None })))
    }
}

impl<T> Slot<T> {
    /// Gives the answer to whoever waits for it, if anyone still does.
    pub(super) fn fill(&self, answer: T) {
        let mut state = self.state();
        state.answer = Some(answer);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Future for Slot<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.state();
        match state.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
