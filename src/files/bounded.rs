//! Waits within a time limit for what uses a disk, since a file system may hang.

use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::core::fault::{Fault, fault};

/// What `work` answers in a thread of this name, which may go on after that; a fault if it takes too long. Then the answer is
/// dropped. `failed`: the failure where there is no thread.
pub fn bounded<T: Send + 'static, E: From<Fault> + Send + 'static>(
    (place, at_most): (&Path, Duration),
    (name, failed): (&str, impl FnOnce(io::Error) -> E),
    work: impl FnOnce(SyncSender<Result<T, E>>) + Send + 'static,
) -> Result<T, E> {
    let (answer, answered) = sync_channel(1);
    thread::Builder::new().name(name.to_owned()).spawn(move || work(answer)).map_err(failed)?;
    match answered.recv_timeout(at_most) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => {
            Err(fault!("disk-hangs", place, waited: at_most.as_secs()).into())
        }
        Err(RecvTimeoutError::Disconnected) => {
            resume_unwind(Box::new("the thread that waits for the disk"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    type Answer = SyncSender<Result<u8, Fault>>;

    fn answered(at_most: Duration, work: impl FnOnce(Answer) + Send + 'static) -> Option<u8> {
        let failed = |_| fault!("no-thread", purpose: "tests");
        let answer = bounded((Path::new("/place"), at_most), ("bounded", failed), work);
        answer.map_err(|fault| assert_eq!(fault.kind, "disk-hangs")).ok()
    }

    #[test]
    fn an_answer_is_waited_for_within_the_limit_though_the_thread_goes_on() {
        const LONG: Duration = Duration::from_secs(60);
        let (go_on, waits) = sync_channel::<()>(0);
        let goes_on = move |answer: Answer| {
            answer.send(Ok(7)).unwrap();
            let _ = waits.recv();
        };
        assert_eq!(answered(LONG, goes_on), Some(7));
        drop(go_on);
        let (go_on, waits) = sync_channel::<()>(0);
        let hangs = move |answer| drop((waits.recv(), answer));
        assert_eq!(answered(Duration::from_millis(1), hangs), None);
        drop(go_on);
        assert!(catch_unwind(|| answered(LONG, |_| panic!("of a thread"))).is_err());
    }
}
