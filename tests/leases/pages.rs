//! The pages of all hosts. A machine has the number of its page only, so that a state of the world is plain data.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};

use snowdrift::core::layout::Tick;
use snowdrift::core::sequencer::Window;
use snowdrift::lease::{At, Host, Joinable, LeasePage, Loss, Phase, Token};

/// When a page was renewed last, by which process, and how often. The driver goes by it; it makes no other state for a search.
#[derive(Clone, Debug, Default)]
pub struct Renewed {
    pub at: i64,
    pub by: usize,
    pub count: u64,
}

impl PartialEq for Renewed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Renewed {}

impl Hash for Renewed {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// What the processes of a host share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Page {
    pub host: usize,
    pub owner: u128,
    pub worker: u64,
    pub phase: Phase,
    pub floor: Tick,
    pub ceiling: Tick,
    pub expires: i64,
    pub known: Option<Token>,
    /// The announced tokens, with their predecessors, by process.
    pub cells: Vec<Option<(Token, Token)>>,
    pub run: u64,
    pub loss: Option<Loss>,
    pub is_asked: bool,
    /// It has lost its name.
    pub is_gone: bool,
    /// The processes that use it, a bit for each.
    pub users: u32,
    /// Those that can announce tokens: not yet those that join without a proof.
    pub places: u32,
    pub renewed: Renewed,
    /// The highest tick issued; the floor where none was.
    pub issued: Tick,
    /// Up to here its window may overlap with others: it was cloned, or the data went back.
    pub excused: Tick,
    /// The store in which its slot was taken.
    pub store: usize,
}

impl Page {
    /// A process uses it no more.
    pub fn leave(&mut self, process: usize) {
        self.users &= !(1 << process);
        self.places &= !(1 << process);
    }
}

/// What is wrong with a page: for tests of the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrong {
    #[default]
    Nothing,
    /// Announced tokens are not known again.
    Unannounced,
    /// The known token may fall back to an older one.
    KnownFalls,
    /// A page opens without its floor.
    NoFloor,
    /// Two processes announce in one place.
    SharedCell,
}

/// A page of a cloned host: which one its machines mean by a number.
pub type Alias = (usize, usize, usize);

thread_local! {
    static ALIASES: RefCell<Vec<Alias>> = const { RefCell::new(Vec::new()) };
    pub static PAGES: RefCell<Vec<Page>> = const { RefCell::new(Vec::new()) };
    pub static WRONG: Cell<Wrong> = const { Cell::new(Wrong::Nothing) };
    /// The pages that a step has changed.
    pub static CHANGED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// The host and process whose step it is.
    static ACTOR: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

pub fn set_actor(host: usize, process: usize, aliases: &[Alias]) {
    ACTOR.set((host, process));
    ALIASES.set(aliases.to_vec());
}

/// The page that a host means by a number.
pub fn number_on(host: usize, number: usize, aliases: &[Alias]) -> usize {
    let alias = aliases.iter().find(|(of, from, _)| (*of, *from) == (host, number));
    alias.map_or(number, |(.., to)| *to)
}

fn wrong(one: Wrong) -> bool {
    WRONG.get() == one
}

/// A page by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Numbered(pub usize);

impl Numbered {
    pub fn with<R>(self, does: impl FnOnce(&mut Page) -> R) -> R {
        let number = ALIASES.with_borrow(|aliases| number_on(ACTOR.get().0, self.0, aliases));
        PAGES.with_borrow_mut(|pages| does(&mut pages[number]))
    }

    fn change<R>(self, does: impl FnOnce(&mut Page) -> R) -> R {
        CHANGED.with_borrow_mut(|changed| changed.push(self.0));
        self.with(does)
    }
}

impl LeasePage for Numbered {
    fn owner(&self) -> u128 {
        self.with(|page| page.owner)
    }
    fn worker(&self) -> u64 {
        self.with(|page| page.worker)
    }
    fn phase(&self) -> Phase {
        self.with(|page| page.phase)
    }
    fn window(&self) -> Window {
        self.with(|page| Window { floor: page.floor, ceiling: page.ceiling })
    }
    fn expires(&self) -> i64 {
        self.with(|page| page.expires)
    }
    fn known(&self) -> Option<Token> {
        self.with(|page| page.known)
    }
    fn advance(&self, from: Option<Token>, to: Token) -> bool {
        self.with(|page| {
            let may = page.known == from || wrong(Wrong::KnownFalls);
            if may {
                page.known = Some(to);
            }
            may
        })
    }
    fn announce(&self, token: Token, before: Token) -> Option<Token> {
        let (_, process) = ACTOR.get();
        let cell = if wrong(Wrong::SharedCell) { 0 } else { process };
        self.with(|page| {
            page.places |= 1 << process;
            if page.cells.len() <= cell {
                page.cells.resize(cell + 1, None);
            }
            let own = &mut page.cells[cell];
            let is_left = own.is_some_and(|(_, of)| of == before);
            if !is_left || wrong(Wrong::SharedCell) {
                *own = Some((token, before));
            }
            own.map(|(token, _)| token)
        })
    }
    fn is_announced(&self, token: Token) -> bool {
        !wrong(Wrong::Unannounced) && self.tokens().contains(&token)
    }
    fn tokens(&self) -> Vec<Token> {
        self.with(|page| {
            let announced = page.cells.iter().flatten().map(|(token, _)| *token);
            announced.chain(page.known).collect()
        })
    }
    fn run(&self) -> u64 {
        self.with(|page| page.run)
    }
    fn confirm(&self, ceiling: Tick, expires: i64, is_renewal: bool, at: At) {
        self.change(|page| {
            if page.phase != Phase::Ended {
                page.places |= 1 << ACTOR.get().1;
                page.ceiling = page.ceiling.max(ceiling);
                page.expires = page.expires.max(expires);
                (page.run, page.is_asked) = (at.run, false);
                if is_renewal {
                    let (count, by) = (page.renewed.count + 1, ACTOR.get().1);
                    page.renewed = Renewed { at: at.mono, by, count };
                }
            }
        });
    }
    fn open(&self, window: Window, expires: i64, at: At) {
        self.with(|page| {
            if page.phase == Phase::Pending {
                page.phase = Phase::Open;
                page.floor = if wrong(Wrong::NoFloor) { -1 } else { window.floor };
                page.issued = page.floor;
            }
        });
        self.confirm(window.ceiling, expires, true, at);
    }
    fn end(&self, why: Loss) -> Option<Tick> {
        self.change(|page| {
            let is_first = page.phase != Phase::Ended;
            if is_first {
                page.phase = Phase::Ended;
                page.loss = Some(why);
            }
            is_first.then_some(page.issued)
        })
    }
    fn loss(&self) -> Option<Loss> {
        self.with(|page| page.loss)
    }
    fn ask(&self) {
        self.change(|page| page.is_asked = true);
    }
    fn is_shared(&self) -> bool {
        let (_, process) = ACTOR.get();
        self.with(|page| page.places & !(1 << process) != 0)
    }
    fn is_gone(&self) -> bool {
        self.with(|page| page.is_gone)
    }
}

/// The host whose step it is.
pub struct Here {
    /// The number of a new page's owner.
    pub fresh: u128,
    pub store: usize,
    /// Whether nobody can create pages.
    pub is_full: bool,
    /// Whether another process of the host takes a slot.
    pub is_locked: bool,
}

impl Host for Here {
    type Page = Numbered;

    fn find(&self, _: u128, claim: Option<u64>) -> Joinable<Numbered> {
        let (host, process) = ACTOR.get();
        PAGES.with_borrow_mut(|pages| {
            let open = |page: &Page| {
                let is_wanted = claim.is_none_or(|worker| worker == page.worker);
                page.host == host && page.phase == Phase::Open && !page.is_gone && is_wanted
            };
            match pages.iter().position(open) {
                Some(at) => {
                    pages[at].users |= 1 << process;
                    Joinable::Page(Numbered(at))
                }
                None if self.is_locked => Joinable::Soon,
                None => Joinable::None,
            }
        })
    }

    fn find_lower(&self, _: u128, worker: u64, now: Tick) -> Option<Numbered> {
        let (host, process) = ACTOR.get();
        PAGES.with_borrow_mut(|pages| {
            let at = pages.iter().position(|page| {
                let is_open = page.phase == Phase::Open && !page.is_gone;
                let issues = page.floor < now && now < page.ceiling;
                page.host == host && page.worker < worker && is_open && issues
            })?;
            pages[at].users |= 1 << process;
            Some(Numbered(at))
        })
    }

    fn create(&self, _: u128, worker: u64) -> Option<Numbered> {
        let (host, process) = ACTOR.get();
        PAGES.with_borrow_mut(|pages| {
            let living = |page: &Page| {
                let is_open = page.phase != Phase::Ended && !page.is_gone;
                page.host == host && page.worker == worker && is_open
            };
            if self.is_full || pages.iter().any(living) {
                return None;
            }
            pages.push(Page {
                host,
                owner: self.fresh,
                worker,
                phase: Phase::Pending,
                floor: -1,
                ceiling: -1,
                expires: 0,
                known: None,
                cells: Vec::new(),
                run: 0,
                loss: None,
                is_asked: false,
                is_gone: false,
                users: 1 << process,
                places: 0,
                renewed: Renewed::default(),
                issued: -1,
                excused: -1,
                store: self.store,
            });
            Some(Numbered(pages.len() - 1))
        })
    }

    fn leave(&self, page: &Numbered) -> bool {
        let (_, process) = ACTOR.get();
        page.with(|page| {
            page.leave(process);
            page.users == 0
        })
    }
}
