//! Any bytes as a slot's file: refused and left as they are; or they are what this version writes, and
//! whoever takes the slot issues nothing that they say may have been issued.

use std::fs;
use std::ops::Range;

use snowdrift::sequencer::{NEVER, Window};
use snowdrift::store::record::{BYTES, Record};
use snowdrift::store::{Store, StoreError, Terms, file};

use crate::rule::{Rules, SequenceStart, Sequencer};
use crate::scratch::{BOOT, MARKS_AT, MARKS_BYTES, Scratch, holder, slot};

/// Of a slot's file: see src/store/file.rs.
const FILE_BYTES: usize = 4096;

/// Of a record: see src/store/record.rs.
const JUMP: Range<usize> = 416..448;

/// The first byte says what the others are made into.
const SEALED: u8 = 1;
const SAME_BOOT: u8 = 2;
const AS_THEY_ARE: u8 = 4;

pub fn check(data: &[u8]) {
    let (&[flags], rest) = data.split_at(data.len().min(1)) else { return };
    let is = |flag| flags & flag != 0;
    let bytes = match is(AS_THEY_ARE) {
        true => rest.to_vec(),
        false => page(rest, is(SEALED)),
    };
    let said = bytes.first_chunk().and_then(|sector| Record::from_bytes(sector).ok());
    if let Some(record) = &said {
        assert_eq!(record.to_bytes(), bytes[..BYTES], "this version writes it otherwise");
        assert!(NEVER <= record.floor && record.floor <= record.ceiling);
        assert_eq!(record.node.layout().checked(), Ok(*record.node.layout()));
    }
    Scratch::with(|scratch| is_taken_as_it_says(scratch, &bytes, said, is(SAME_BOOT)));
}

/// Takes the slot of a file that holds `bytes`, which say this much.
fn is_taken_as_it_says(scratch: &Scratch, bytes: &[u8], said: Option<Record>, is_same_boot: bool) {
    let slot = said.as_ref().map_or_else(slot, |record| record.node);
    let store = scratch.store(is_same_boot);
    let path = store.path_of(&slot);
    fs::write(&path, bytes).expect("it is written");
    let found = file::look(scratch.path()).expect("the directory is read");
    let is_whole = matches!(&found[..], [found] if found.record.is_ok());
    assert!(said.is_some() || !is_whole, "of what is no record something is told");
    match store.acquire(&slot, &holder(1), said.as_ref().map_or(9, |record| record.ceiling)) {
        Ok(mut held) => {
            let before = said.expect("what is no record is not acquired");
            let terms = held.terms();
            assert!(is_whole && terms.ceiling == before.ceiling);
            let is_known = is_same_boot && before.boot_id == BOOT;
            assert_eq!(terms.floor, if is_known { before.floor } else { before.ceiling });
            assert!(held.marks().is_some());
            issues_nothing_again(&before, &terms);
            let after = &file::look(scratch.path()).expect("it is read")[0].record;
            let after = after.as_ref().expect("its holder has written it");
            assert_eq!((after.floor, after.ceiling), (terms.floor, terms.ceiling));
            assert_eq!(after.holder, Some(holder(1)));
        }
        Err(StoreError::Unusable { .. }) => {
            assert_eq!(fs::read(&path).expect("it is there"), bytes, "it is left as it is");
        }
        Err(other) => panic!("{other}"),
    }
}

/// A file of the right length, with zeros where they belong.
fn page(rest: &[u8], is_sealed: bool) -> Vec<u8> {
    let mut bytes = vec![0; FILE_BYTES];
    let (sector, marks) = rest.split_at(rest.len().min(BYTES));
    bytes[..sector.len()].copy_from_slice(sector);
    if bytes[JUMP].iter().all(|&byte| byte == 0) {
        // No jump and nothing to skip, unless the input says otherwise.
        bytes[JUMP].fill(0xff);
    }
    let marks = &marks[..marks.len().min(MARKS_BYTES)];
    bytes[MARKS_AT..][..marks.len()].copy_from_slice(marks);
    if is_sealed {
        // Chance does not find a CRC.
        bytes[..12].copy_from_slice(b"snowdrft\x02\0\0\0");
        let check = crc32fast::hash(&bytes[16..BYTES]);
        bytes[12..16].copy_from_slice(&check.to_le_bytes());
    }
    bytes
}

/// A sequencer on these terms stays within them, whatever the clock shows.
fn issues_nothing_again(before: &Record, terms: &Terms) {
    let layout = before.node.layout();
    let rules = Rules { may_raise: true, max_ahead: 0, start: SequenceStart::Zero };
    let mut sequencer = Sequencer::new(layout, rules, terms.high);
    sequencer.set_window(Window { floor: terms.floor, ceiling: terms.ceiling });
    let near = |tick: i64| [tick.saturating_sub(1), tick, tick.saturating_add(1)];
    let marks = terms.high.marks.into_iter().flat_map(near);
    for now in near(before.floor).into_iter().chain(near(before.ceiling)).chain(marks) {
        if let Ok(block) = sequencer.reserve(now, 1) {
            assert!(block.tick > terms.floor && block.tick <= terms.ceiling);
            assert!(block.tick > terms.high.marks[block.counter] || block.first > 0);
        }
    }
}
