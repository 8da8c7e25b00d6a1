//! Who is told how long work goes on.

use indicatif::{ProgressBar, ProgressStyle};

/// Somebody who waits for work that is done piece by piece.
pub trait Progress {
    /// There are about so many pieces.
    fn begin(&self, pieces: u64);

    /// So many have been done, with this to be said of them.
    fn at(&self, pieces: u64, said: &str);

    /// It is done.
    fn end(&self);
}

/// A bar on standard error. It shows itself on terminals alone.
#[derive(Debug, Clone)]
pub struct Bar(ProgressBar);

impl Bar {
    /// Makes the bar of these pieces.
    pub fn new(pieces: &str) -> Self {
        let bar = ProgressBar::new(0);
        let style =
            ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {pieces}, {{eta}} left; {{msg}}"));
        Self(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    /// Takes the bar away while something else is written.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }
}

impl Progress for Bar {
    fn begin(&self, pieces: u64) {
        self.0.reset();
        self.0.set_length(pieces);
    }

    fn at(&self, pieces: u64, said: &str) {
        self.0.set_position(pieces);
        self.0.set_message(said.to_owned());
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn begin(&self, _: u64) {}

    fn at(&self, _: u64, _: &str) {}

    fn end(&self) {}
}
