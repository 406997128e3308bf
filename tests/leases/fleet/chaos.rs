//! A day of faults, from a seed.

use super::{Deed, Fleet, HOUR, LIMITS, MINUTE, Network, SECOND};

/// How long nothing happens at the end, so that all settles.
pub const QUIET: i64 = 30 * MINUTE;

impl Fleet {
    /// Plans faults from the tenth minute to half an hour before the end: of the store one after the other, and of hosts at any
    /// time.
    pub fn plan_chaos(&mut self, end: i64) {
        let end = end - QUIET;
        self.plan_store_faults(end);
        self.plan_host_faults(end);
        // Once: all hosts restart, one after the other; and a tenth of them lose their power at once.
        let hosts = self.hosts.len();
        let rolling = end / 3;
        for host in 0..hosts {
            let at = rolling + host as i64 * (end / 6) / hosts as i64;
            self.plan(at, Deed::Restart(host, 5 * SECOND));
        }
        for host in 0..hosts / 10 {
            self.plan(end * 5 / 6, Deed::Reboot(host, MINUTE));
        }
    }

    fn plan_store_faults(&mut self, end: i64) {
        let mut at = 10 * MINUTE;
        let mut is_hour_over = end < 4 * HOUR;
        while at < end {
            let random = &mut self.random;
            let lasts = match random.u8(..20) {
                0..10 => random.i64(SECOND..30 * SECOND),
                10..17 => random.i64(30 * SECOND..5 * MINUTE),
                _ => random.i64(5 * MINUTE..20 * MINUTE),
            };
            let pause = random.i64(self.plan.pause.clone());
            let (fault, lasts) = match random.u8(..9) {
                _ if !is_hour_over && at > end / 2 => {
                    is_hour_over = true;
                    (Deed::Reach(Network::Silent), HOUR)
                }
                0 => (Deed::Reach(Network::Refused), lasts),
                1 => (Deed::Reach(Network::Silent), lasts),
                2 => (Deed::Reach(Network::Lagging(random.i64(100..4000))), lasts),
                3 | 4 => (Deed::Reach(Network::Late), lasts),
                5 => (Deed::LoseSlots(random.usize(1..6)), 0),
                6 => (Deed::LoseAll, 0),
                7 => {
                    let before = random.i64(SECOND..10 * MINUTE);
                    self.plan((at - before).max(0), Deed::Remember);
                    (Deed::Revert, 0)
                }
                _ => (Deed::NewRun, 0),
            };
            let lasts = lasts.min(end - at);
            self.plan(at, fault);
            self.plan(at + lasts, Deed::Reach(Network::Fine));
            at += lasts + pause;
        }
    }

    fn plan_host_faults(&mut self, end: i64) {
        let (hosts, processes) = (self.hosts.len(), self.processes.len());
        // Each host about once in two hours, and never more than ten a minute.
        let gap = (2 * HOUR / hosts as i64).max(6 * SECOND);
        let mut at = 5 * MINUTE;
        while at < end {
            let random = &mut self.random;
            let host = random.usize(..hosts);
            let pause = random.i64(5 * SECOND..3 * MINUTE);
            let process = random.usize(..processes);
            match random.u8(..10) {
                0..5 => self.plan(at, Deed::Kill(process)),
                5 => self.plan(at, Deed::Reboot(host, pause)),
                6 | 7 => self.plan(at, Deed::Restart(host, pause)),
                8 => self.plan(at, Deed::LosePage(host)),
                _ => {
                    let skew = LIMITS.max_clock_skew;
                    let clock = match random.u8(..3) {
                        0 => random.i64(-skew..=skew),
                        1 => random.i64(-HOUR..-skew),
                        _ => random.i64(skew..HOUR),
                    };
                    let right_again = at + random.i64(MINUTE..20 * MINUTE);
                    self.plan(at, Deed::SetClock(host, clock));
                    self.plan(right_again.min(end), Deed::SetClock(host, 0));
                }
            }
            at += self.random.i64(0..2 * gap);
        }
    }
}
