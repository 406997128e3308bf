//! The sequencer beside the plainest statement of its rules. Whatever happens to it, every answer is
//! the rules', and no ID comes twice.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::{Block, HighMarks, NEVER, Stall, Window};

use crate::rule::{Rules, SequenceStart, Sequencer};

/// What happens to a sequencer.
#[derive(Arbitrary, Clone, Debug)]
pub enum Event {
    /// The clock moves by so many ticks, forth or back; so many IDs are asked for, and so many of them
    /// given back. With a lag, the ticks are counted on.
    Draw { step: i8, want: u32, unused: u32, max_lag: Option<u8> },
    /// The clock stands elsewhere.
    Leap { to: Tick },
    /// A new sequencer goes on from the high marks.
    Restart,
    /// Only ticks from this one on, seen from the clock, may be issued, and so many of them.
    Window { from: i8, width: u8 },
}

/// A sequencer, its clock, and what it has issued.
pub struct Model {
    layout: Layout,
    rules: Rules,
    sequencer: Sequencer,
    now: Tick,
    /// The first and the last ID of each block.
    issued: BTreeMap<u64, u64>,
}

impl Model {
    pub fn new(layout: Layout, may_raise: bool, max_ahead: Tick, random: Option<u64>) -> Model {
        let start = match random {
            Some(seed) => SequenceStart::Random(fastrand::Rng::with_seed(seed)),
            None => SequenceStart::Zero,
        };
        let rules = Rules { may_raise, max_ahead, start };
        let sequencer = Sequencer::new(&layout, rules.clone(), HighMarks::default());
        Model { layout, rules, sequencer, now: 50, issued: BTreeMap::new() }
    }

    /// # Panics
    /// If the sequencer answers what it must not.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Draw { step, want, unused, max_lag } => {
                self.now = self.now.saturating_add(step.into());
                self.draw(want.max(1).into(), unused.into(), max_lag.map(Tick::from));
            }
            Event::Leap { to } => self.now = to,
            Event::Restart => {
                let window = self.sequencer.window();
                let high = *self.sequencer.high_marks();
                self.sequencer = Sequencer::new(&self.layout, self.rules.clone(), high);
                self.sequencer.set_window(window);
            }
            Event::Window { from, width } => {
                let floor = self.now.saturating_add(from.into()).max(NEVER);
                let ceiling = floor.saturating_add(width.into());
                self.sequencer.set_window(Window { floor, ceiling });
            }
        }
    }

    fn draw(&mut self, want: u64, unused: u64, max_lag: Option<Tick>) {
        let before = self.sequencer.clone();
        let answer = match max_lag {
            Some(max_lag) => self.sequencer.reserve_counting(self.now, want, max_lag),
            None => self.sequencer.reserve(self.now, want),
        };
        match answer {
            Ok(block) => {
                assert!(block.len <= want);
                self.is_at_the_rules_place(&block, &before, max_lag.unwrap_or(0));
                let unused = unused.min(block.len);
                self.issue(&Block { len: block.len - unused, ..block });
                if unused > 0 {
                    assert!(self.sequencer.give_back(&block, unused));
                }
            }
            Err(stall) => {
                assert_eq!(before.high_marks(), self.sequencer.high_marks(), "it changes nothing");
                self.is_the_rules_stall(stall);
            }
        }
        assert!(self.sequencer.high_marks().marks.iter().all(|mark| *mark >= NEVER));
    }

    fn is_at_the_rules_place(&self, block: &Block, before: &Sequencer, lag: Tick) {
        let (Model { now, layout, rules, .. }, tick) = (self, block.tick);
        let window = before.window();
        assert!(tick > window.floor && tick <= window.ceiling, "{block:?} in {window:?}");
        assert!(
            tick >= now - lag && tick <= now.saturating_add(rules.max_ahead),
            "{block:?} at {now}"
        );
        let (current, last) = before.current();
        if last < *now && last >= now - lag && window == Window::OPEN {
            assert!(tick == last || tick == last + 1, "{tick} was not counted on from {last}");
        }
        // That it went on is the proof that numbers remained.
        let counters = if rules.may_raise { layout.counters() } else { current + 1 };
        let counter = counter_by_rule(before.high_marks(), counters, tick, true);
        assert_eq!(Some(block.counter), counter, "{block:?} after {:?}", before.high_marks());
    }

    fn is_the_rules_stall(&self, stall: Stall) {
        let Model { now, layout, rules, sequencer, .. } = self;
        let Window { floor, ceiling: top } = sequencer.window();
        match stall {
            Stall::BeforeEpoch => assert!(*now < 0),
            Stall::AtFloor { until } => assert_eq!(until, floor + 1 - rules.max_ahead),
            Stall::AboveCeiling { ceiling } => assert_eq!(ceiling, top),
            Stall::NoPage => panic!("a page is none of the sequencer's"),
            Stall::TimeEnded => assert!(now.saturating_add(rules.max_ahead) > layout.last_tick()),
            Stall::SequenceExhausted { until } | Stall::ClockBehind { until } => {
                assert!(until > *now, "{stall:?} at {now}");
                let mut later = sequencer.clone();
                later.set_window(Window::OPEN);
                let answer = later.reserve(until, 1);
                // `until` is the earliest moment. That tick may be full already: the current one, or
                // one that was taken ahead. The next stall says so.
                let may_be_full = rules.max_ahead > 0 || sequencer.current().1 == until;
                let on_time = match answer {
                    Ok(_) | Err(Stall::TimeEnded) => true,
                    Err(Stall::SequenceExhausted { until: next }) => may_be_full && next > until,
                    Err(_) => false,
                };
                assert!(on_time, "{stall:?} was to end at {until}: {answer:?}");
            }
        }
    }

    /// Notes that the IDs of a block were handed out.
    fn issue(&mut self, block: &Block) {
        if block.len == 0 {
            return;
        }
        let node = Node::new(self.layout, 0, 0).expect("the layout is valid");
        let id = |first| {
            let one = Block { first, len: 1, ..*block };
            let id = node.first_id(&one);
            assert_eq!(node.block_of(id), Some(one), "every number fits its bits");
            id
        };
        let (first, last) = (id(block.first), id(block.first + block.len - 1));
        assert_eq!(last - first, block.len - 1, "{block:?} runs into other bits");
        if let Some((other, end)) = self.issued.range(..=last).next_back() {
            assert!(*end < first, "{block:?} repeats IDs of {other} to {end}");
        }
        self.issued.insert(first, last);
    }
}

/// DESIGN's rule, word for word: the smallest counter that may be used. A counter may be used when
/// `tick` lies above its high mark, or when it is current, `tick` is its mark and numbers remain.
fn counter_by_rule(high: &HighMarks, counters: usize, tick: Tick, remain: bool) -> Option<usize> {
    (0..counters).find(|&counter| {
        let mark = high.marks[counter];
        tick > mark || (counter == high.current && tick == mark && remain)
    })
}
