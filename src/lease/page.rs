//! What the protocol needs of a host: its leased pages, their lease words, and its lock. And rule 4: whose a line is.

use super::record::{Line, Token};
use crate::core::layout::Tick;
use crate::core::loss::Loss;
use crate::core::sequencer::Window;

/// A page's lease word: one atomic, which the processes of a host share.
///
/// | known | pending | meaning |
/// |---|---|---|
/// | 0 | P | the page is pending: its line is being written with P |
/// | K | 0 | the newest line of this page that any process has seen has K |
/// | K | P | some process has written the line with P over the one with K, or is about to, or died before |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Word {
    /// The token of the newest line that was seen; 0 for none.
    pub known: Token,
    /// The token of the next one, announced before it is sent; 0 for none.
    pub pending: Token,
}

impl Word {
    /// The word of 64 bits.
    pub fn of_bits(bits: u64) -> Word {
        Word { known: Token(bits >> 32), pending: Token(bits & u64::from(u32::MAX)) }
    }

    /// Its 64 bits.
    pub fn bits(self) -> u64 {
        self.known.0 << 32 | self.pending.0
    }

    /// Whether a line with this token is the page's.
    pub fn has(self, token: Token) -> bool {
        token.0 != 0 && (token == self.known || token == self.pending)
    }
}

/// The life of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It issues nothing: its line is being taken.
    Pending,
    /// It issues within its window.
    Open,
    /// It issues nothing any more.
    Ended,
}

/// Whose a page is in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tenure {
    /// The namespace's ID.
    pub namespace: Token,
    /// The page's own ID.
    pub owner: Token,
    /// Its worker ID.
    pub worker: u64,
}

/// The last renewal of a page that a store has confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Renewal {
    /// When, by the host's monotonic clock, ms.
    pub at: i64,
    /// Until when the line is held, Unix ms.
    pub expires: i64,
    /// The ttl of the process that renewed.
    pub ttl: i64,
}

/// A host as one process sees it. Its pages are in memory that its processes share.
pub trait Host {
    /// A page, for as long as this process uses it.
    type Page: Clone;

    /// A random number, drawn now: never one that a cloned machine draws, too.
    fn random(&mut self) -> u64;
    /// One of so many, at random.
    fn choose(&mut self, of: usize) -> usize;

    /// The host's pages of this layout and datacenter that have not ended: those in use first, then the lowest worker ID.
    fn pages(&mut self) -> Vec<Self::Page>;
    /// Makes a pending page, with this word. A pending page of the same worker ID ends: its process was stopped. An open one may end
    /// here, or when this one opens. None where this host cannot use the worker ID.
    fn create(&mut self, tenure: Tenure, word: Word) -> Option<Self::Page>;
    /// Uses a page of another process. Returns false where it has ended.
    fn join(&mut self, page: &Self::Page) -> bool;
    /// Stops using a page. Returns whether nobody else uses it.
    fn leave(&mut self, page: &Self::Page) -> bool;

    /// Whose it is.
    fn tenure(&self, page: &Self::Page) -> Tenure;
    /// Its life so far. A page that has lost its name has ended.
    fn phase(&self, page: &Self::Page) -> Phase;
    /// Its floor, and its confirmed ceiling.
    fn window(&self, page: &Self::Page) -> Window;
    /// Its lease word.
    fn word(&self, page: &Self::Page) -> Word;
    /// Replaces its word, if that is still `from`. Returns whether it did.
    fn swap(&mut self, page: &Self::Page, from: Word, to: Word) -> bool;
    /// Its last renewal.
    fn renewal(&self, page: &Self::Page) -> Renewal;
    /// Notes a renewal.
    fn renew(&mut self, page: &Self::Page, renewal: Renewal);

    /// Opens a pending page. An open page of the same worker ID ends, and this one begins above what that issued.
    fn open(&mut self, page: &Self::Page, window: Window);
    /// Raises the ceiling to one that a line has confirmed. It never falls.
    fn raise(&mut self, page: &Self::Page, ceiling: Tick);
    /// Ends it. Returns the last tick that it may have issued, at least its floor, to the first caller alone.
    fn end(&mut self, page: &Self::Page, loss: Loss) -> Option<Tick>;
    /// Why it has ended.
    fn loss(&self, page: &Self::Page) -> Loss;

    /// Whether this process has the host's lock now: it takes a slot for all, and had the lock, or nobody has it.
    fn lock(&mut self) -> bool;
    /// Takes the lock from a process that has it for too long.
    fn break_lock(&mut self);
    /// Leaves the lock to others.
    fn unlock(&mut self);
}

/// Whose a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// A process of this page wrote it.
    Mine,
    /// Another process of this page has gone on since the call began: look again.
    Unsure,
    /// The page has lost it.
    Lost(Loss),
}

/// Rule 4. `then` is the page's word when the call began, `now` is the present one. The line is none where the record, or the
/// line in it, is absent or another namespace's.
///
/// While the known token stays, each line of this page has it or the pending one: a token becomes known before the next one is
/// announced. A line of another owner tells by its floor whether the one that took it has seen all that this page had confirmed.
pub fn judge(
    then: Word,
    now: Word,
    owner: Token,
    confirmed: Tick,
    line: Option<&Line>,
) -> Judgement {
    let mine = line.filter(|line| line.owner == owner);
    if mine.is_some_and(|line| now.has(line.token)) {
        return Judgement::Mine;
    }
    if now.known != then.known {
        return Judgement::Unsure;
    }
    let covered = mine.map(|line| line.ceiling).or(line.map(|line| line.floor));
    let is_taken = covered.is_some_and(|covered| covered >= confirmed);
    Judgement::Lost(if is_taken { Loss::Taken } else { Loss::Reverted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Holder;

    #[test]
    fn a_line_is_judged_by_owner_and_word() {
        let [known, pending, other] = [1, 2, 3].map(Token);
        let now = Word { known, pending };
        let line = |owner, token, floor, ceiling| Line {
            owner: Token(owner),
            token,
            is_held: true,
            floor,
            ceiling,
            expires: 0,
            holder: Holder::default(),
        };
        let before = Word { known: other, pending: known };
        use Judgement::{Lost, Mine, Unsure};
        let lost = Lost(Loss::Reverted);
        for (then, found, judged) in [
            (now, Some(line(7, known, 0, 10)), Mine),
            (now, Some(line(7, pending, 0, 10)), Mine),
            (before, Some(line(7, pending, 0, 10)), Mine),
            // Known is now what was pending, and the line is older.
            (before, Some(line(7, other, 0, 10)), Unsure),
            (before, None, Unsure),
            (now, None, lost),
            // Mine, but older than what it confirmed; or a clone's, which is not.
            (now, Some(line(7, other, 0, 9)), lost),
            (now, Some(line(7, other, 0, 10)), Lost(Loss::Taken)),
            // Another owner, who began below what this page had confirmed, or not.
            (now, Some(line(8, known, 9, 99)), lost),
            (now, Some(line(8, other, 10, 99)), Lost(Loss::Taken)),
        ] {
            assert_eq!(judge(then, now, Token(7), 10, found.as_ref()), judged, "{found:?}");
        }
        assert_eq!(Word::of_bits(now.bits()), now);
        assert!(!Word::default().has(Token(0)));
    }
}
