//! The sequencer that ships beside the plain statement of its rule. Whatever happens to it, every answer is the rule's,
//! and no ID comes twice.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::node::Node;
use snowdrift::core::sequence::{Cells, Rules, Sequence};
use snowdrift::core::sequencer::{Block, NEVER, Stall, Window};

use crate::rule::Sequencer;

/// What happens to a sequencer.
#[derive(Arbitrary, Clone, Debug)]
pub enum Event {
    /// The clock moves by so many ticks, forth or back; so many IDs are asked for, and so many of them
    /// given back. With a lag, the ticks are counted on.
    Draw { step: i8, want: u32, unused: u32, max_lag: Option<u8> },
    /// The clock stands elsewhere.
    Leap { to: Tick },
    /// Other cells go on above what was issued.
    Restart,
    /// So do these, and only ticks from this one on, seen from the clock, may be issued, and so many of them.
    Window { from: i8, width: u8 },
}

/// Cells, and the rule beside them.
pub struct Both {
    pub shared: Sequence<Box<Cells>>,
    pub rules: Rules,
    pub plain: Sequencer,
}

impl Both {
    pub fn new(layout: &Layout, rules: Rules) -> Both {
        let Rules { may_raise, max_ahead, .. } = rules;
        let shared = Sequence::new(Box::default(), layout);
        Both { shared, rules, plain: Sequencer::new(layout, may_raise, max_ahead) }
    }

    /// In a window that a store has granted.
    pub fn within(layout: &Layout, rules: Rules, window: Window) -> Both {
        let mut both = Both::new(layout, rules);
        both.plain.set_window(window);
        // Which no cells begin in.
        both.plain.start_above(0);
        both.shared.memory().prepare(layout);
        let closed = both.shared.closed().expect("closed");
        both.shared.begin(&closed, window, None).expect("nobody else reopens");
        both
    }

    #[allow(dead_code, reason = "the fuzz target draws by events alone")]
    pub fn reserve(&mut self, now: Tick, want: u64) -> Result<Block, Stall> {
        self.draw(now, want, None)
    }

    /// With a lag, the ticks are counted on.
    fn draw(&mut self, now: Tick, want: u64, lag: Option<Tick>) -> Result<Block, Stall> {
        let (rules, mut clock) = (&self.rules, || now);
        let answer = match lag {
            Some(lag) => self.shared.reserve_counting(rules, &mut clock, want, lag),
            None => self.shared.reserve(rules, &mut clock, |_| want),
        };
        // A random number is none of the rule's.
        if !rules.random_start {
            let plain = match lag {
                Some(lag) => self.plain.reserve_counting(now, want, lag),
                None => self.plain.reserve(now, want),
            };
            assert_eq!(answer, plain, "at {now}, lag {lag:?}");
        }
        answer
    }

    pub fn give_back(&mut self, block: &Block, unused: u64) -> bool {
        let answer = self.shared.give_back(block, unused);
        if !self.rules.random_start {
            assert_eq!(answer, self.plain.give_back(block, unused), "{unused} of {block:?}");
        }
        answer
    }
}

/// Both, their clock, and what they have issued.
pub struct Model {
    layout: Layout,
    both: Both,
    window: Window,
    now: Tick,
    /// The first and the last ID of each block.
    issued: BTreeMap<u64, u64>,
}

impl Model {
    pub fn new(layout: Layout, rules: Rules) -> Model {
        let both = Both::new(&layout, rules);
        Model { layout, both, window: Window::OPEN, now: 50, issued: BTreeMap::new() }
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
            Event::Restart => self.restart(NEVER, Tick::MAX),
            Event::Window { from, width } => {
                let from = self.now.saturating_add(from.into());
                self.restart(from, from.saturating_add(width.into()));
            }
        }
    }

    fn restart(&mut self, floor: Tick, ceiling: Tick) {
        let highest = self.both.shared.highest().max(self.both.shared.floor());
        let floor = floor.max(highest).clamp(0, self.layout.last_tick());
        self.window = Window { floor, ceiling: ceiling.max(NEVER) };
        self.both = Both::within(&self.layout, self.both.rules, self.window);
    }

    fn draw(&mut self, want: u64, unused: u64, max_lag: Option<Tick>) {
        let Ok(block) = self.both.draw(self.now, want, max_lag) else { return };
        let Window { floor, ceiling } = self.window;
        assert!(block.tick > floor && block.tick <= ceiling && block.len <= want, "{block:?}");
        // A tick that is given back whole counts as not begun; the plain one keeps its mark.
        let unused = unused.min(if block.first == 0 { block.len - 1 } else { block.len });
        self.issue(&Block { len: block.len - unused, ..block });
        if unused > 0 {
            assert!(self.both.give_back(&block, unused));
        }
        let Both { shared, plain, rules } = &self.both;
        if self.window == Window::OPEN && !rules.random_start {
            assert_eq!(shared.high_marks(), *plain.high_marks());
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
