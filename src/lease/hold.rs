//! A page in use: joined and proven, renewed, taken over, released (rules 3, 4, 6, 8, 11 and 13).

use super::calls::{Call, Command, Record, Settings};
use super::known::{Here, Over, Stage};
use super::machine::Machine;
use super::page::{Judgement, Phase, Renewal, Tenure, Word, judge};
use super::record::{Bucket, Line, Token};
use crate::core::layout::Tick;
use crate::core::loss::Loss;
use crate::core::sequencer::NEVER;

impl<P: Clone> Machine<P> {
    /// Rule 3, where a renewal is due: writes the line with a new token and a higher ceiling, over the bucket that was seen last.
    pub(super) fn renew(&mut self, page: &P, here: &mut Here<'_, P>) -> Command {
        let Settings { layout, limits: super::Limits { ttl, .. }, .. } = self.settings;
        let (wanted, cap) = self.wanted(here);
        // Another process may have done it. Where the token was another's, its ceiling is low.
        let host = &*here.host;
        let enough = wanted.min(cap).saturating_sub(ttl / 6 / layout.tick_ms);
        let is_far = host.window(page).ceiling >= enough;
        self.renewing.take_if(|since| is_far && host.renewal(page).at >= *since);
        if self.renewing.is_none() {
            // What others write until the next renewal would refuse it: that reads first.
            let (owner, wall) = (host.tenure(page).owner, here.at.wall);
            let is_other = |line: &Line| line.owner != owner && line.is_held && line.expires > wall;
            if let Some(user) = &mut self.user {
                user.seen.take_if(|(_, bucket)| bucket.lines.values().any(is_other));
            }
            return Command::Wait;
        }
        let word = here.host.word(page);
        let Some((before, bucket, line)) = self.own_line(page, word, here) else {
            return self.look(here);
        };
        if (wanted > cap || self.is_time_old(here.at))
            && !std::mem::replace(&mut self.is_timed, true)
        {
            // Rule 8: the store's clock was read before a pause, which the monotonic clock may not have seen.
            return self.call(Call::Now, here);
        }
        let announced = self.user.as_ref().and_then(|user| user.announced);
        // The ceiling is fixed before the token is drawn: a clone draws another one, and asks for no more. The process that announced
        // a pending one may have promised a lower ceiling than this process wants.
        let ceiling = line.ceiling.max(match announced {
            _ if word.pending == Token(0) => wanted.min(cap),
            Some((own, ceiling)) if own == word.pending => ceiling,
            _ => NEVER,
        });
        let Some(token) = announce(page, word, here) else { return Command::Again };
        if let Some(user) = &mut self.user {
            user.announced = Some((token, ceiling));
        }
        let Settings { limits, ref holder, .. } = self.settings;
        // By the later of two clocks: the store's may be early, and right again before this line expires.
        let (earliest, latest) = self.now(here.at);
        let longest = latest.max(here.at.wall).saturating_add(self.limits.ttl);
        let expires = earliest.max(here.at.wall).saturating_add(limits.ttl);
        let expires = line.expires.min(longest).max(expires);
        let line = Line { token, is_held: true, ceiling, expires, holder: holder.clone(), ..line };
        let bucket = bucket.with(here.host.tenure(page).worker, line);
        self.write(Some(before), Record::Bucket(bucket), here)
    }

    /// The page's line as it was seen last, if it has the known token: with its bucket, and the token of that.
    fn own_line(&self, page: &P, word: Word, here: &Here<'_, P>) -> Option<(Token, Bucket, Line)> {
        let (token, bucket) = self.user.as_ref()?.seen.as_ref()?;
        let line = bucket.lines.get(&here.host.tenure(page).worker)?;
        (line.token == word.known).then(|| (*token, bucket.clone(), line.clone()))
    }

    /// The ceiling that this process wants, and the most that it may ask for: rule 8.
    fn wanted(&self, here: &Here<'_, P>) -> (Tick, Tick) {
        let Settings { layout, limits, .. } = self.settings;
        let ahead = limits.ttl.saturating_add(limits.max_ahead);
        let wanted = layout.tick_at(here.at.wall.saturating_add(ahead));
        (wanted, limits.cap(layout, self.now(here.at).0))
    }

    /// What was found of the bucket of a page in use, or written.
    pub(super) fn found_using(
        &mut self,
        page: &P,
        stage: Stage,
        found: Option<(Token, Bucket)>,
        then: Word,
        here: &mut Here<'_, P>,
    ) -> Option<Command> {
        if here.host.phase(page) == Phase::Ended && !matches!(stage, Stage::Freeing(_)) {
            return None;
        }
        let now = here.host.word(page);
        let tenure = here.host.tenure(page);
        let same = found.as_ref().filter(|(_, bucket)| bucket.id == tenure.namespace);
        let line = same.and_then(|(_, bucket)| bucket.lines.get(&tenure.worker)).cloned();
        let confirmed = here.host.window(page).ceiling;
        let judged = judge(then, now, tenure.owner, confirmed, line.as_ref());
        if stage == Stage::Joining {
            return match judged {
                Judgement::Mine => self.joined(now),
                Judgement::Unsure => None,
                Judgement::Lost(loss) => self.contradict(loss, here),
            };
        }
        match (judged, line, stage) {
            (Judgement::Mine, Some(line), Stage::Freeing(_)) if !line.is_held => {
                // The line is free, or somebody else's.
                self.lose(Loss::Released, here);
                None
            }
            (Judgement::Mine, Some(line), _) => {
                let (token, bucket) = found?;
                let is_known = line.token == now.known;
                let to = Word { known: line.token, pending: Token(0) };
                if !is_known && !here.host.swap(page, now, to) {
                    return Some(Command::Again);
                }
                let user = self.user.as_mut()?;
                user.seen = Some((token, bucket));
                let is_own = user.announced.take_if(|(own, _)| *own == line.token).is_some();
                if let Stage::Freeing(_) = stage {
                    return None;
                }
                // After the word: a process that dies in between leaves a ceiling that is too low.
                here.host.raise(page, line.ceiling);
                match stage {
                    Stage::Using(None) if is_own || !is_known => {
                        let ttl = self.settings.limits.ttl;
                        let renewal = Renewal { at: here.at.mono, expires: line.expires, ttl };
                        here.host.renew(page, renewal);
                        None
                    }
                    Stage::Using(Some(joined)) => self.read_unproven(page, joined, &line, here),
                    _ => None,
                }
            }
            (Judgement::Lost(loss), _, Stage::Using(None)) => {
                here.host.end(page, loss);
                // The process that ended it first has said why.
                Some(self.lose(loss, here))
            }
            (Judgement::Lost(loss), _, Stage::Using(Some(_))) => self.contradict(loss, here),
            (Judgement::Lost(_), ..) => {
                self.lose(Loss::Released, here);
                None
            }
            (Judgement::Unsure | Judgement::Mine, ..) => {
                self.user.as_mut()?.seen = None;
                None
            }
        }
    }

    /// Rule 11: this store is the page's own once it shows a token that was announced after this process joined. It never does if it is a
    /// copy of that store.
    fn read_unproven(
        &mut self,
        page: &P,
        joined: Word,
        line: &Line,
        here: &mut Here<'_, P>,
    ) -> Option<Command> {
        if self.is_left(page, here) && here.host.lock() {
            return self.take_over(page, here);
        }
        if !joined.has(line.token) {
            self.go_on(Stage::Using(None));
        }
        Some(Command::Wait)
    }

    /// What a process does that joined a page, and has no proof yet that this store is the page's own.
    pub(super) fn prove(&mut self, page: &P, joined: Word, here: &mut Here<'_, P>) -> Command {
        if self.is_left(page, here) {
            return if here.host.lock() { self.look(here) } else { Command::Locked };
        }
        here.host.unlock();
        match joined.has(here.host.word(page).known) {
            true => Command::Wait,
            false => self.look(here),
        }
    }

    /// Whether nobody has renewed a page for half a ttl.
    fn is_left(&self, page: &P, here: &Here<'_, P>) -> bool {
        let Renewal { at, ttl, .. } = here.host.renewal(page);
        here.at.mono - at >= ttl.max(self.settings.limits.ttl) / 2
    }

    /// Ends the page, to take its line with another one, above what was issued.
    fn take_over(&mut self, page: &P, here: &mut Here<'_, P>) -> Option<Command> {
        let (Tenure { worker, owner, .. }, word) = (here.host.tenure(page), here.host.word(page));
        let ended = here.host.end(page, Loss::Released);
        here.host.leave(page);
        self.time = None;
        let seen = self.user.take()?.seen?;
        self.search_over(Over { worker, owner, word, last: ended? }, seen);
        None
    }

    /// This process's store shows the page's line: it issues from the page, too.
    fn joined(&mut self, now: Word) -> Option<Command> {
        // Rule 11 is about copied stores. A copied directory is another namespace: a process that finds the line has the page's own
        // directory.
        let is_proven = self.settings.has_own_clock;
        self.go_on(Stage::Using(if is_proven { None } else { Some(now) }));
        self.renewing = None;
        Some(Command::Open)
    }

    /// This process's store contradicts the page, and nothing proves that it is the page's own: another page is next.
    fn contradict(&mut self, loss: Loss, here: &mut Here<'_, P>) -> Option<Command> {
        if let Some(user) = &self.user {
            self.contradicted.push(here.host.tenure(&user.page).owner);
        }
        let was_using = self.page().is_some();
        let command = self.lose(loss, here);
        was_using.then_some(command)
    }

    /// Stops using the page. The last process of the host ends it, and frees its line.
    pub(super) fn leave(&mut self, page: &P, here: &mut Here<'_, P>) -> Command {
        let is_last = here.host.leave(page);
        match is_last.then(|| here.host.end(page, Loss::Released)).flatten() {
            Some(last) => self.go_on(Stage::Freeing(last)),
            None => self.user = None,
        }
        self.plan(here)
    }

    /// Rule 6: a line is freed at the last tick that its page issued. A ceiling falls in no other way, and never rises so: what other
    /// pages of this host had issued before does not count.
    pub(super) fn free(&mut self, page: &P, last: Tick, here: &mut Here<'_, P>) -> Command {
        let word = here.host.word(page);
        let Some((before, bucket, line)) = self.own_line(page, word, here) else {
            return self.look(here);
        };
        let Some(token) = announce(page, word, here) else { return Command::Again };
        let ceiling = last.min(line.ceiling).max(line.floor);
        let line = Line { token, is_held: false, ceiling, ..line };
        let bucket = bucket.with(here.host.tenure(page).worker, line);
        self.write(Some(before), Record::Bucket(bucket), here)
    }
}

/// The token of the page's next line: the pending one, or a new one. None where another process was faster.
fn announce<P: Clone>(page: &P, word: Word, here: &mut Here<'_, P>) -> Option<Token> {
    if word.pending != Token(0) {
        return Some(word.pending);
    }
    let pending = Token(u64::from(here.host.random() as u32).max(1));
    here.host.swap(page, word, Word { pending, ..word }).then_some(pending)
}
