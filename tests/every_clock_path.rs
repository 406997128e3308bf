//! Every path that a clock can take over a tiny layout, walked in full: no path makes the sequencer
//! repeat an ID. The same walk finds the path on which each of a few planted faults does.

use std::collections::HashSet;

use crate::rule::{Rules, SequenceStart, Sequencer};
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::sequencer::{Block, HighMarks};

/// 1 clock-back bit and 1 sequence bit: 2 counter values, 2 IDs a tick.
const TINY: Layout = Layout {
    timestamp_bits: 4,
    datacenter_bits: 0,
    worker_bits: 0,
    clock_back_bits: 1,
    sequence_bits: 1,
    tick_ms: 1,
    epoch_ms: 0,
};
const RULES: Rules = Rules { may_raise: true, max_ahead: 0, start: SequenceStart::Zero };
const READINGS: Tick = 5;

/// What the walk checks: the sequencer, or one with a fault.
trait Subject: Clone {
    fn reserve(&mut self, now: Tick, want: u64) -> Option<Block>;
    fn give_back(&mut self, block: &Block, unused: u64);
    fn restart(&mut self);
}

#[derive(Clone)]
struct Real(Sequencer, Rules);

impl Real {
    fn new(rules: Rules) -> Self {
        Real(Sequencer::new(&TINY, rules.clone(), HighMarks::default()), rules)
    }
}

impl Subject for Real {
    fn reserve(&mut self, now: Tick, want: u64) -> Option<Block> {
        self.0.reserve(now, want).ok()
    }
    fn give_back(&mut self, block: &Block, unused: u64) {
        self.0.give_back(block, unused);
    }
    fn restart(&mut self) {
        self.0 = Sequencer::new(&TINY, self.1.clone(), *self.0.high_marks());
    }
}

/// Falls back to counter 0 as soon as the clock has passed the highest tick, forgetting that the
/// other counter has a mark of its own.
#[derive(Clone, Default)]
struct ResetsTooEarly {
    counter: usize,
    last: Option<(Tick, u64)>,
    highest: Option<Tick>,
}

impl Subject for ResetsTooEarly {
    fn reserve(&mut self, now: Tick, _: u64) -> Option<Block> {
        if self.highest.is_none_or(|highest| now > highest) {
            self.counter = 0;
        } else if self.last.is_some_and(|(tick, _)| now < tick) {
            self.counter += 1;
        }
        let sequence = match self.last {
            Some((tick, sequence)) if tick == now => sequence + 1,
            _ => 0,
        };
        if sequence > 1 || self.counter > 1 {
            return None;
        }
        self.last = Some((now, sequence));
        self.highest = self.highest.max(Some(now));
        Some(Block { tick: now, counter: self.counter, first: sequence, len: 1 })
    }
    fn give_back(&mut self, _: &Block, _: u64) {}
    fn restart(&mut self) {}
}

/// Starts anew after a restart.
#[derive(Clone)]
struct Forgets(Real);

impl Subject for Forgets {
    fn reserve(&mut self, now: Tick, want: u64) -> Option<Block> {
        self.0.reserve(now, want)
    }
    fn give_back(&mut self, block: &Block, unused: u64) {
        self.0.give_back(block, unused);
    }
    fn restart(&mut self) {
        self.0 = Real::new(RULES);
    }
}

/// Takes the same unused IDs back twice.
#[derive(Clone)]
struct TakesBackTwice(Real);

impl Subject for TakesBackTwice {
    fn reserve(&mut self, now: Tick, want: u64) -> Option<Block> {
        self.0.reserve(now, want)
    }
    fn give_back(&mut self, block: &Block, unused: u64) {
        self.0.give_back(block, unused);
        let shorter = Block { len: block.len - unused, ..*block };
        self.0.give_back(&shorter, unused);
    }
    fn restart(&mut self) {
        self.0.restart();
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    /// Read the clock and reserve so many IDs.
    Draw(Tick, u64),
    /// Reserve two IDs, use one, give the other back.
    DrawOneOfTwo(Tick),
    /// Go on from the high marks.
    Restart,
}

/// Walks every sequence of `depth` moves. The first that issues an ID twice is the answer.
fn duplicate<S: Subject>(subject: &S, moves: &[Move], depth: usize) -> Option<Vec<Move>> {
    fn walk<S: Subject>(
        subject: &S,
        moves: &[Move],
        depth: usize,
        issued: &mut HashSet<(usize, Tick, u64)>,
        path: &mut Vec<Move>,
    ) -> bool {
        if depth == 0 {
            return false;
        }
        for &next in moves {
            let mut subject = subject.clone();
            path.push(next);
            let (block, used) = match next {
                Move::Draw(now, want) => {
                    let block = subject.reserve(now, want);
                    (block, block.map_or(0, |block| block.len))
                }
                Move::DrawOneOfTwo(now) => {
                    let block = subject.reserve(now, 2);
                    if let Some(block) = block {
                        subject.give_back(&block, block.len - 1);
                    }
                    (block, 1)
                }
                Move::Restart => {
                    subject.restart();
                    (None, 0)
                }
            };
            let ids: Vec<_> = block
                .iter()
                .flat_map(|block| (0..used).map(|n| (block.counter, block.tick, block.first + n)))
                .collect();
            if ids.iter().any(|id| issued.contains(id)) {
                return true;
            }
            issued.extend(&ids);
            if walk(&subject, moves, depth - 1, issued, path) {
                return true;
            }
            for id in &ids {
                issued.remove(id);
            }
            path.pop();
        }
        false
    }
    let mut path = Vec::new();
    walk(subject, moves, depth, &mut HashSet::new(), &mut path).then_some(path)
}

fn draws(want: u64) -> Vec<Move> {
    (0..READINGS).map(|now| Move::Draw(now, want)).collect()
}

fn all_moves() -> Vec<Move> {
    let mut moves = draws(1);
    moves.extend((0..READINGS).map(Move::DrawOneOfTwo));
    moves.push(Move::Restart);
    moves
}

#[test]
fn no_path_of_eight_readings_repeats_an_id() {
    for want in [1, 2] {
        for may_raise in [true, false] {
            for max_ahead in [0, 1] {
                let real = Real::new(Rules { may_raise, max_ahead, ..RULES });
                assert_eq!(
                    duplicate(&real, &draws(want), 8),
                    None,
                    "{want} {may_raise} {max_ahead}"
                );
            }
        }
    }
}

#[test]
fn no_path_with_restarts_and_blocks_given_back_repeats_an_id() {
    for max_ahead in [0, 2] {
        let real = Real::new(Rules { max_ahead, ..RULES });
        assert_eq!(duplicate(&real, &all_moves(), 5), None);
    }
}

#[test]
fn the_walk_finds_a_counter_that_is_reset_merely_because_the_clock_passed_the_highest_tick() {
    let path = duplicate(&ResetsTooEarly::default(), &draws(1), 8);
    assert!(path.is_some());
    // The shortest way there: 1 under counter 0, 0 under counter 1, 2 under 0 again, and the next
    // step back meets the run at 0 that counter 1 had already.
    let mut subject = ResetsTooEarly::default();
    let issued = [1, 0, 2, 0].map(|now| subject.reserve(now, 1).unwrap());
    assert_eq!(issued[1], issued[3]);
}

#[test]
fn the_walk_finds_a_restart_that_forgets() {
    assert!(duplicate(&Forgets(Real::new(RULES)), &all_moves(), 3).is_some());
}

#[test]
fn the_walk_finds_ids_that_are_taken_back_twice() {
    assert!(duplicate(&TakesBackTwice(Real::new(RULES)), &all_moves(), 3).is_some());
}
