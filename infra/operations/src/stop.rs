//! The operator's wish to stop: what is begun is finished, and nothing new begins.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

/// Exit code of a second Ctrl-C, which waits for nothing.
const INTERRUPTED: i32 = 130;

/// Whether somebody wants to stop. Clones share the wish.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Where the wish comes from.
#[derive(Debug)]
pub struct Wish(watch::Sender<bool>);

impl Stop {
    /// Makes a wish that can be made, and who looks whether it was.
    pub fn new() -> (Wish, Self) {
        let (sender, receiver) = watch::channel(false);
        (Wish(sender), Self(receiver))
    }

    /// Returns whether it was made by Ctrl-C. A second one ends the program where it is.
    pub fn on_interrupt() -> Self {
        let (wish, stop) = Self::new();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                eprintln!("finishing what is begun; Ctrl-C once more ends at once");
                wish.make();
            }
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(INTERRUPTED);
            }
        });
        stop
    }

    /// Returns whether somebody wants to stop.
    pub fn is_wished(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for so long, or until somebody wants to stop.
    pub async fn pause(&self, wait: Duration) {
        if wait.is_zero() {
            return;
        }
        tokio::select! {
            () = sleep(wait) => {}
            () = self.wished() => {}
        }
    }

    /// Waits until somebody wants to stop.
    pub async fn wished(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|wished| *wished).await.is_err() {
            // Nobody is left who could want to.
            std::future::pending::<()>().await;
        }
    }
}

impl Wish {
    /// Makes the wish.
    pub fn make(&self) {
        self.0.send_replace(true);
    }
}
