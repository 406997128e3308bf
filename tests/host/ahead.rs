//! IDs ahead of the clock, and the loss of the page that they were drawn from.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use snowdrift::core::fault::{Class, Failure};

use super::life::{Life, TICKS};
use super::recorded::{Recorded, TTL};

/// More than any test takes.
const HOUR: i64 = 3_600_000;

/// How many IDs a tick has.
const ALL: u64 = 4096;

/// Draws all IDs of 20 ticks. The ceiling follows what was drawn.
fn draw_ahead(life: &Life, user: &mut Recorded) {
    for _ in 0..20 {
        user.keep().unwrap();
        life.draw(&user.generator, ALL).unwrap();
    }
}

/// The record's user draws ahead and is killed; who comes next has no record.
#[test]
fn what_was_drawn_ahead_beside_a_record_is_not_repeated_without_it() {
    let life = Life::new(1);
    let mut user = life.recorded(50).unwrap();
    life.pass(1);
    draw_ahead(&life, &mut user);
    drop(user);
    fs::remove_file(life.page()).unwrap();
    let next = life.plain().unwrap();
    (0..60).for_each(|_| {
        life.pass(1);
        let _ = life.draw(&next, ALL);
    });
    life.assert_unique();
}

#[test]
fn all_beside_one_record_have_one_max_ahead() {
    let life = Life::new(1);
    let user = life.recorded(50).unwrap();
    let Failure { class: Class::Conflict, fault } = life.recorded(20).err().unwrap() else {
        panic!("another class")
    };
    let values = ["theirs", "ours"].map(|name| fault.detail(name).cloned());
    assert_eq!(values, [Some(50i64.into()), Some(20i64.into())], "{fault:?}");
    user.close();
    life.recorded(20).unwrap();
}

/// What happens to the page of processes that draw ahead beside a record, and who goes on.
#[test]
fn what_was_drawn_ahead_beside_a_record_is_not_repeated_beside_it() {
    for tick_ms in TICKS {
        for (is_killed, max_ahead, with_directory) in [
            (false, 50, false),
            (false, 50, true),
            (true, 50, false),
            (true, 50, true),
            (true, 20, true),
            (true, 0, true),
            (true, 0, false),
        ] {
            let life = Life::new(tick_ms);
            let mut user = Some(life.recorded(50 * tick_ms).unwrap());
            life.next_tick();
            draw_ahead(&life, user.as_mut().unwrap());
            if with_directory {
                fs::remove_dir_all(life.directory().path()).unwrap();
            } else {
                fs::remove_file(life.page()).unwrap();
            }
            life.moment();
            match &mut user {
                user if is_killed => drop(user.take()),
                Some(user) => {
                    let _ = life.draw(&user.generator, 1);
                    user.keep().unwrap();
                }
                None => {}
            }
            let mut next = life.recorded(max_ahead * tick_ms).unwrap();
            for _ in 0..60 {
                life.next_tick();
                for one in user.iter_mut().chain([&mut next]) {
                    one.keep().unwrap();
                    let _ = life.draw(&one.generator, ALL);
                }
            }
            life.assert_unique();
            life.pass(2000 + 3 * tick_ms);
            next.keep().unwrap();
            life.draw(&next.generator, 1).unwrap();
            life.assert_unique();
        }
    }
}

/// The lost page had issued nothing ahead of the clock.
#[test]
fn max_ahead_that_was_not_used_delays_nobody_after_the_loss_of_a_page() {
    let life = Life::new(1);
    let mut user = life.recorded(HOUR).unwrap();
    life.pass(1);
    life.draw(&user.generator, 3).unwrap();
    fs::remove_file(life.page()).unwrap();
    life.pass(1);
    assert!(life.draw(&user.generator, 3).is_err());
    user.keep().unwrap();
    life.pass(1);
    life.draw(&user.generator, 3).unwrap();
    life.assert_unique();
}

#[test]
fn max_ahead_that_was_not_used_delays_nobody_after_a_kill_and_the_loss_of_a_page() {
    for with_directory in [false, true] {
        let life = Life::new(1);
        let user = life.recorded(HOUR).unwrap();
        life.pass(1);
        life.draw(&user.generator, 3).unwrap();
        drop(user);
        if with_directory {
            fs::remove_dir_all(life.directory().path()).unwrap();
        } else {
            fs::remove_file(life.page()).unwrap();
        }
        let mut next = life.recorded(HOUR).unwrap();
        // What was recorded may have been issued.
        life.pass(1 + TTL.as_millis() as i64);
        next.keep().unwrap();
        life.draw(&next.generator, 3).unwrap();
        life.assert_unique();
    }
}

#[test]
fn max_ahead_that_was_not_used_delays_nobody_when_a_deploy_changes_it() {
    for (before, after) in [(HOUR, 2 * HOUR), (HOUR, 0), (0, HOUR)] {
        for is_killed in [false, true] {
            let life = Life::new(1);
            let user = life.recorded(before).unwrap();
            life.pass(1);
            life.draw(&user.generator, 3).unwrap();
            if is_killed {
                drop(user)
            } else {
                user.close()
            }
            let next = life.recorded(after).unwrap();
            life.pass(1);
            life.draw(&next.generator, 3).unwrap();
            life.assert_unique();
        }
    }
}

/// Another program overwrites the page: what was drawn ahead is unknown. Then the file is removed, as the error says.
#[test]
fn what_was_drawn_ahead_from_a_page_that_was_overwritten_is_not_repeated() {
    for is_closed in [false, true] {
        for [from, to] in [[0, 4096], [256, 640]] {
            let life = Life::new(1);
            let mut users = vec![life.recorded(50).unwrap(), life.recorded(50).unwrap()];
            life.pass(1);
            draw_ahead(&life, &mut users[0]);
            let page = OpenOptions::new().write(true).open(life.page()).unwrap();
            page.write_all_at(&vec![0; to - from], from as u64).unwrap();
            fs::remove_file(life.page()).unwrap();
            if is_closed {
                users.drain(..).for_each(Recorded::close);
                users.push(life.recorded(50).unwrap());
            }
            for ms in [1; 60].into_iter().chain([2000, 1]) {
                life.pass(ms);
                for user in &mut users {
                    // The others have not given up their page yet.
                    let _ = user.keep();
                    let _ = life.draw(&user.generator, ALL);
                }
            }
            life.assert_unique();
            life.pass(1);
            assert!(users.iter().all(|user| life.draw(&user.generator, 1).is_ok()));
        }
    }
}
