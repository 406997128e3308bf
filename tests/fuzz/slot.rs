//! Any bytes as a slot's file: refused and left as they are; or they are what this version writes, and
//! whoever takes the slot issues nothing that they say may have been issued.

use std::fs;
use std::ops::Range;

use snowdrift::authority::file;
use snowdrift::authority::record::{BYTES, Record, Skip};
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::Tick;
use snowdrift::core::sequencer::NEVER;

use super::scratch::{BLOCK_BYTES, BLOCKS, Process, Scratch, holder, slot};

/// Of a record: see src/authority/record/sector.rs.
const MARKS: Range<usize> = 112..240;
const JUMP: Range<usize> = 256..288;

/// The first byte says what the others are made into.
const SEALED: u8 = 1;
const AS_THEY_ARE: u8 = 4;

pub fn check(data: &[u8]) {
    let (&[flags], rest) = data.split_at(data.len().min(1)) else { return };
    let is = |flag| flags & flag != 0;
    let bytes = match is(AS_THEY_ARE) {
        true => rest.to_vec(),
        false => whole(rest, is(SEALED)),
    };
    let is_whole = bytes.len() == BLOCKS * BLOCK_BYTES;
    let said = bytes.first_chunk().and_then(|sector| Record::from_bytes(sector).ok());
    let said = said.filter(|_| is_whole);
    if let Some(record) = &said {
        assert_eq!(record.to_bytes(), bytes[..BYTES], "this version writes it otherwise");
        assert!(NEVER <= record.floor && record.floor <= record.ceiling);
        assert_eq!(record.node.layout().checked(), Ok(*record.node.layout()));
    }
    Scratch::with(|scratch| is_taken_as_it_says(scratch, &bytes, said));
}

/// Takes the slot of a file that holds `bytes`, which say this much.
fn is_taken_as_it_says(scratch: &Scratch, bytes: &[u8], said: Option<Record>) {
    let slot = said.as_ref().map_or_else(slot, |record| record.node);
    fs::write(scratch.store().path_of(&slot), bytes).expect("it is written");
    let found = file::look(scratch.path()).expect("the directory is read");
    let is_read = matches!(&found[..], [(_, record)] if record.is_ok());
    assert_eq!(said.is_some(), is_read, "of what is no record something is said");
    let tick = said.as_ref().map_or(9, |record| record.floor).clamp(0, slot.layout().last_tick());
    match Process::start(scratch, &slot, tick) {
        Ok(process) => {
            let before = said.expect("what is no record is not acquired");
            let floor = if before.is_closed { before.floor } else { before.ceiling };
            assert!(process.durable.floor() >= floor);
            let after = &file::look(scratch.path()).expect("it is read")[0].1;
            let after = after.as_ref().expect("its holder has written it");
            assert_eq!(after.floor, process.durable.floor());
            assert!(after.ceiling >= before.ceiling && after.generation == before.generation + 1);
            assert_eq!(after.holder, Some(holder()));
            issues_nothing_again(&before, floor, after.ceiling, &process);
        }
        Err(Failure { class: Class::Slot, .. }) => {
            let kept = fs::read(scratch.store().path_of(&slot)).expect("it is there");
            assert_eq!(kept, bytes, "it is left as it is");
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// A file of the right length, with zeros where they belong, that says the same in each block.
fn whole(rest: &[u8], is_sealed: bool) -> Vec<u8> {
    let mut sector = [0; BYTES];
    let len = rest.len().min(BYTES);
    sector[..len].copy_from_slice(&rest[..len]);
    for none in [MARKS, JUMP] {
        if sector[none.clone()].iter().all(|&byte| byte == 0) {
            // No marks, no jump and nothing to skip, unless the input says otherwise.
            sector[none].fill(0xff);
        }
    }
    if is_sealed {
        // Chance does not find a CRC.
        sector[..12].copy_from_slice(b"snowdrft\x03\0\0\0");
        let check = crc32fast::hash(&sector[16..BYTES]);
        sector[12..16].copy_from_slice(&check.to_le_bytes());
    }
    let mut block = sector.to_vec();
    block.resize(BLOCK_BYTES, 0);
    block.repeat(BLOCKS)
}

/// A process stays within its window, whatever the clock shows.
fn issues_nothing_again(before: &Record, floor: Tick, ceiling: Tick, process: &Process) {
    let near = |tick: Tick| [tick.saturating_sub(1), tick, tick.saturating_add(1)];
    let marks = before.high.marks.into_iter().flat_map(near);
    for now in near(before.floor).into_iter().chain(near(before.ceiling)).chain(marks) {
        if let Some((counter, tick)) = process.draw_at(now) {
            assert!(tick > floor && tick <= ceiling);
            let is_begun = before.is_closed && before.used > 0 && counter == before.high.current;
            let mark = before.high.marks[counter] - Tick::from(is_begun);
            assert!(!before.is_closed || tick > mark, "{counter} {tick}");
            let Skip { from, to } = before.skip;
            assert!(before.skip == Skip::NONE || tick < from || tick > to);
        }
    }
}
