//! The ring as the package has it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use snowdrift::ring::buffer::{Ring, Taken, ring};

fn take(ring: &Ring, most: usize, oldest: u64) -> (Vec<u64>, Taken) {
    let mut ids = vec![0; most];
    let taken = ring.take(&mut ids, oldest);
    ids.truncate(taken.count);
    (ids, taken)
}

#[test]
fn what_is_put_in_comes_out_in_order_and_once_round_after_round() {
    let (mut padder, ring) = ring(8);
    let mut put = 100;
    let mut got = Vec::new();
    while put < 400 {
        let count = padder.room().min(3);
        padder.put(put, count);
        put += count;
        got.extend(take(&ring, 2, 0).0);
    }
    assert!(got.len() > 100);
    assert!(got.iter().copied().eq(100..100 + got.len() as u64));
}

#[test]
fn there_is_room_for_as_many_as_were_taken() {
    let (mut padder, ring) = ring(4);
    assert_eq!(padder.room(), 4);
    padder.put(1, 4);
    assert_eq!((padder.room(), ring.len()), (0, 4));
    take(&ring, 3, 0);
    assert_eq!((padder.room(), ring.len()), (3, 1));
}

#[test]
fn a_block_ends_where_the_ids_do_not_follow_each_other() {
    let (mut padder, ring) = ring(8);
    padder.put(10, 3);
    padder.put(64, 2);
    assert_eq!(take(&ring, 8, 0), (vec![10, 11, 12], Taken { count: 3, dropped: 0, left: 2 }));
    assert_eq!(take(&ring, 8, 0), (vec![64, 65], Taken { count: 2, dropped: 0, left: 0 }));
    assert_eq!(take(&ring, 8, 0), (vec![], Taken::default()));
}

#[test]
fn what_is_too_old_is_dropped_and_counted() {
    let (mut padder, ring) = ring(8);
    padder.put(10, 3);
    padder.put(64, 2);
    assert_eq!(take(&ring, 8, 64), (vec![64, 65], Taken { count: 2, dropped: 3, left: 0 }));
    assert_eq!(padder.room(), 8);
    padder.put(70, 5);
    assert_eq!(take(&ring, 8, 99), (vec![], Taken { count: 0, dropped: 5, left: 0 }));
}

#[test]
fn what_does_not_rise_above_what_is_there_takes_its_place() {
    let (mut padder, ring) = ring(8);
    assert_eq!(padder.put(10, 3), 0);
    assert_eq!(padder.put(5, 6), 3, "also where there would be no room beside it");
    assert_eq!(
        take(&ring, 8, 0),
        (vec![5, 6, 7, 8, 9, 10], Taken { count: 6, ..Taken::default() })
    );
    assert_eq!(padder.put(11, 1), 0);
}

#[test]
fn an_empty_array_takes_nothing() {
    let (mut padder, ring) = ring(2);
    padder.put(1, 2);
    assert_eq!(take(&ring, 0, 0).1, Taken { count: 0, dropped: 0, left: 2 });
}

#[test]
fn threads_that_drain_it_together_get_each_id_once() {
    const LAST: u64 = if cfg!(miri) { 300 } else { 100_000 };
    let (mut padder, ring) = ring(64);
    let all_put = AtomicBool::new(false);
    let mut all: Vec<u64> = std::thread::scope(|scope| {
        let drain = || {
            let mut got = Vec::new();
            loop {
                let is_all_put = all_put.load(SeqCst);
                let (ids, _) = take(&ring, 5, 0);
                if ids.is_empty() && is_all_put {
                    return got;
                }
                got.extend(ids);
            }
        };
        let takers: Vec<_> = (0..3).map(|_| scope.spawn(drain)).collect();
        let mut next = 1;
        while next <= LAST {
            let count = padder.room().min(7).min(LAST + 1 - next);
            padder.put(next, count);
            next += count;
        }
        all_put.store(true, SeqCst);
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    all.sort_unstable();
    assert!(all.into_iter().eq(1..=LAST));
}
