use super::*;

const NOW: i64 = 1_700_000_000_000;

/// An application that draws IDs one by one and counts its calls.
struct Application {
    pace: Pace,
    us: u64,
    /// The number of IDs left, the ms of their reservation, and whether they are unchecked.
    block: (u64, i64, bool),
    is_watched: bool,
    calls: u64,
}

impl Application {
    fn new() -> Self {
        let pace = Pace::default();
        Application { pace, us: 0, block: (0, 0, false), is_watched: false, calls: 0 }
    }

    fn ms(&self) -> i64 {
        NOW + (self.us / 1000) as i64
    }

    /// Draws an ID. Returns the number of ms by which it lags behind the clock.
    fn draw(&mut self) -> i64 {
        let (left, ms, is_free) = self.block;
        if left == 0 || (!is_free && ms != self.ms()) {
            self.refill();
        }
        self.block.0 -= 1;
        self.ms() - self.block.1
    }

    fn refill(&mut self) {
        self.calls += 1;
        self.pace.note(self.block.0, self.is_watched, 32);
        self.pace = self.pace.at(self.ms());
        let (size, advice) = (self.pace.size(), self.pace.advice());
        self.is_watched |= advice == Advice::Watch;
        self.pace.begin_block(size);
        self.block = (size, self.ms(), advice == Advice::Free);
    }

    fn end_turn(&mut self) {
        self.is_watched = false;
        if self.block.2 {
            self.pace.note(self.block.0, false, 32);
            self.block = (0, 0, false);
        }
    }
}

#[test]
fn in_a_steady_loop_of_any_rate_no_id_lags_by_more_than_a_ms() {
    for gap_ns in [10, 15, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000] {
        let mut application = Application::new();
        let count = (20_000_000 / gap_ns).clamp(500, 1_000_000);
        for n in 0..count {
            application.us = n * gap_ns / 1000;
            let lag = application.draw();
            assert!((0..=1).contains(&lag), "{lag} ms, {gap_ns} ns apart, after {n}");
        }
        let calls = application.calls as f64 / count as f64;
        let most = if gap_ns <= 100 { 0.01 } else { 1.0 };
        assert!(calls <= most, "{calls} calls an ID, {gap_ns} ns apart");
    }
}

#[test]
fn the_first_16_ids_of_a_turn_have_the_ms_of_their_draw() {
    let mut application = Application::new();
    // After loops of all lengths, with pauses within the turn.
    for round in 1..2000_u64 {
        application.end_turn();
        for n in 0..round % 17 {
            application.us += if n == round % 5 { 200_000 } else { 1 };
            assert_eq!(application.draw(), 0, "round {round}");
        }
        application.end_turn();
        for _ in 0..(round * 7919) % 700 {
            application.draw();
        }
    }
}

#[test]
fn after_a_burst_at_most_the_rest_of_one_block_lags() {
    for burst in 1..3000 {
        let mut application = Application::new();
        for n in 0..burst {
            application.us = n / 20;
            application.draw();
        }
        application.us += 200_000;
        let lagging = (0..1000).filter(|_| application.draw() > 0).count() as u64;
        assert!(lagging <= LEAST_UNCHECKED.max(burst / 16), "{lagging} after {burst}");
    }
}

#[test]
fn one_id_a_turn_makes_few_calls_and_watches_few_turns() {
    let mut application = Application::new();
    let mut watched = 0;
    for n in 0..100_000 {
        application.us = n;
        application.draw();
        watched += u32::from(application.is_watched);
        application.end_turn();
    }
    assert!(application.calls < 100_000 / 20, "{}", application.calls);
    assert!(watched < 50, "{watched}");
}

#[test]
fn a_slow_application_reserves_only_what_it_draws() {
    for (gap_us, most) in [(2000, 1), (1000, 1), (500, 2), (300, 4)] {
        let mut application = Application::new();
        for n in 0..1000 {
            application.us = n * gap_us;
            application.draw();
            assert!(application.block.0 < most, "{} left", application.block.0);
        }
    }
}

#[test]
fn without_a_clock_each_checked_block_has_one_id() {
    let mut pace = Pace::default();
    let mut is_watched = false;
    while pace.advice() != Advice::Free {
        pace.note(0, is_watched, 0);
        pace = pace.at(NOW);
        is_watched |= pace.advice() == Advice::Watch;
        assert!(pace.size() == 1 || pace.advice() == Advice::Free);
        pace.begin_block(pace.size());
    }
    assert_eq!(pace.advice(), Advice::Free);
    assert!(pace.size() >= LEAST_UNCHECKED);
}

#[test]
fn a_clock_that_rolls_back_or_jumps_resets_the_rate() {
    let mut pace = Pace::default();
    pace.begin_block(200);
    pace.note(0, false, 32);
    for ms in [NOW - 1_000_000, NOW + 1_000_000_000, i64::MIN, i64::MAX] {
        assert_eq!(pace.at(ms).size(), 1, "{ms}");
    }
}

#[test]
fn a_watched_turn_is_a_loop_after_16_draws_at_64_a_ms() {
    let most_checked = 32;
    for (watched, rate, advice, size, booking_size) in [
        (None, 64, Advice::Check, 32, 32),
        (Some(15), 64, Advice::Check, 32, 32),
        (Some(16), 63, Advice::Check, 32, 32),
        (Some(16), 64, Advice::Free, 16, 64),
        (Some(16), 512, Advice::Free, 32, 256),
    ] {
        let pace = Pace { watched, rate, most_checked, ..Pace::default() };
        let told = (pace.advice(), pace.size(), pace.booking_size());
        assert_eq!(told, (advice, size, booking_size), "{watched:?} {rate}");
    }
}

#[test]
fn a_block_that_is_forgotten_counts_as_not_drawn() {
    for is_forgotten in [false, true] {
        let mut pace = Pace::default();
        pace.begin_block(200);
        assert_eq!(pace.block_len(), 200);
        if is_forgotten {
            pace.forget_block();
        }
        pace.note(0, false, 32);
        assert_eq!(pace.size(), if is_forgotten { 1 } else { 32 });
    }
}
