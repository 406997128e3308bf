//! What the replies of calls tell a machine.

use super::calls::{Call, Command, Found, Record, Refusal, Reply};
use super::known::{Here, Known, Look, Stage, User};
use super::machine::Machine;
use super::page::Word;
use super::record::Key;

impl<P: Clone> Machine<P> {
    pub(super) fn reply(
        &mut self,
        call: Call,
        reply: Reply,
        then: Word,
        here: &mut Here<'_, P>,
    ) -> Option<Command> {
        let (key, found) = match (call, reply) {
            (Call::Now, Reply::Time) => return None,
            (Call::Write { token, record: Record::Namespace(namespace), .. }, Reply::Written) => {
                (self.id, self.is_lost) = (Some(namespace.id), false);
                self.namespace = Known::Found(token, namespace);
                if self.search.look == Look::Absent(false) {
                    self.search.look = Look::Absent(true);
                }
                return None;
            }
            (Call::Write { key, token, record, .. }, Reply::Written) => {
                (key, Some((token, Ok(record))))
            }
            (Call::Read(key) | Call::Write { key, .. }, Reply::Found(found)) => (key, found),
            _ => {
                // What is known may be old after the pause.
                if self.user.is_none() {
                    (self.namespace, self.search.look) = (Known::Unread, Look::Unread);
                    here.host.unlock();
                }
                return Some(Command::Failed);
            }
        };
        match key {
            Key::Namespace => self.found_namespace(found, here),
            Key::Bucket(..) => self.found_bucket(found, then, here),
        }
    }

    fn found_namespace(&mut self, found: Found, here: &mut Here<'_, P>) -> Option<Command> {
        self.namespace = match found {
            Some((token, Ok(Record::Namespace(namespace)))) => {
                self.limits = self.limits.max(namespace.limits);
                self.size = namespace.size;
                // The one that this process knew is lost, or was recovered.
                self.is_lost |= self.id.replace(namespace.id).is_some_and(|id| id != namespace.id);
                Known::Found(token, namespace)
            }
            Some((_, Err(why))) if self.user.is_none() => {
                return Some(self.refuse(Refusal::Unreadable(Key::Namespace, why), here));
            }
            Some(_) => Known::Unread,
            None => {
                self.is_lost |= self.id.is_some();
                Known::Absent
            }
        };
        if let Some(User { page, stage: Stage::Checking, .. }) = &self.user {
            return Some(self.check(&page.clone(), here));
        }
        self.search.look = match std::mem::take(&mut self.search.look) {
            // Counted only after it was found absent, or others were faster to raise the floor for it: look again.
            Look::Absent(_) if self.has_counted() => Look::Unread,
            Look::Absent(_) => Look::Absent(true),
            Look::Found(token, bucket, _) if self.namespace != Known::Absent => {
                Look::Found(token, bucket, true)
            }
            _ => Look::Unread,
        };
        None
    }

    fn found_bucket(
        &mut self,
        found: Found,
        then: Word,
        here: &mut Here<'_, P>,
    ) -> Option<Command> {
        let Some(User { page, stage, .. }) = &self.user else {
            return self.found_searching(found, here);
        };
        let (page, stage) = (&page.clone(), *stage);
        let found = found.and_then(|(token, record)| match record {
            Ok(Record::Bucket(bucket)) => Some((token, bucket)),
            _ => None,
        });
        match stage {
            Stage::Taking => self.found_taking(page, found, here),
            _ => self.found_using(page, stage, found, then, here),
        }
    }
}
