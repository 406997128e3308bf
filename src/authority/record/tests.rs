use super::sector::LONGEST_HOST;
use super::*;
use crate::core::layout::Layout;

fn high() -> HighMarks {
    let mut high = HighMarks { current: 3, ..HighMarks::default() };
    high.marks[3] = 214_999_999_999;
    high
}

fn record() -> Record {
    Record {
        node: Node::new(Layout::NODE, 7, 31).unwrap(),
        file: u128::MAX / 7,
        page: u128::MAX / 5,
        generation: 12,
        floor: 5,
        ceiling: 215_000_000_000,
        high: high(),
        used: 4096,
        is_closed: false,
        holder: Some(Holder {
            token: u128::MAX / 3,
            pid: 4711,
            host: "web-1.example".to_owned(),
            started_ms: 1_795_000_000_000,
        }),
        jump: Jump { before: 7, since: 214_000_000_000 },
        skip: Skip { from: 216_000_000_000, to: 216_000_000_000 },
    }
}

#[test]
fn a_record_reads_as_it_was_written() {
    let released = Record {
        holder: None,
        page: 0,
        used: 0,
        high: HighMarks::default(),
        is_closed: true,
        floor: NEVER,
        jump: Jump::NONE,
        skip: Skip::NONE,
        ..record()
    };
    for record in [record(), released] {
        assert_eq!(Record::from_bytes(&record.to_bytes()), Ok(record));
    }
}

/// Other versions of snowdrift read the file. The check covers all bytes after it.
#[test]
fn a_record_has_the_same_bytes_in_all_versions() {
    let bytes = record().to_bytes();
    assert_eq!(u32::from_le_bytes(bytes[12..16].try_into().unwrap()), 3_159_854_377);
}

#[test]
fn a_long_host_is_cut_between_characters() {
    let host = "ü".repeat(200);
    let holder = Holder { host: host.clone(), ..record().holder.unwrap() };
    let written = Record { holder: Some(holder), ..record() };
    let read = Record::from_bytes(&written.to_bytes()).unwrap();
    assert_eq!(read.holder.unwrap().host, host[..LONGEST_HOST]);
}

#[test]
fn every_damaged_byte_is_noticed() {
    let whole = record().to_bytes();
    // Miri needs a minute for all bytes.
    for at in (0..BYTES).step_by(if cfg!(miri) { 37 } else { 1 }) {
        for mask in [1, 0x80, 0xff] {
            let mut damaged = whole;
            damaged[at] ^= mask;
            assert!(Record::from_bytes(&damaged).is_err(), "byte {at}");
        }
    }
}

#[test]
fn what_is_foreign_newer_or_damaged_is_told_apart() {
    assert_eq!(Record::from_bytes(&[0; BYTES]), Err(Unsound::Foreign));
    let mut newer = record().to_bytes();
    newer[8] = 4;
    assert_eq!(Record::from_bytes(&newer), Err(Unsound::Newer(4)));
    let mut older = record().to_bytes();
    older[8] = 1;
    assert_eq!(Record::from_bytes(&older), Err(Unsound::Older(1)));
    older[8] = 0;
    assert_eq!(Record::from_bytes(&older), Err(Unsound::Damaged), "no version at all");
    let mut damaged = record().to_bytes();
    damaged[60] ^= 1;
    assert_eq!(Record::from_bytes(&damaged), Err(Unsound::Damaged));
}

#[test]
fn what_no_writer_writes_is_damage() {
    let written = Record { holder: None, ..record() };
    // Padding of the layout, a counter that the layout lacks, `is_closed`, padding, `held`, and the bytes after the
    // holder.
    for at in [21, 150, 249, 252, 288, 509] {
        let mut bytes = written.to_bytes();
        bytes[at] = 2;
        let check = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&check.to_le_bytes());
        assert_eq!(Record::from_bytes(&bytes), Err(Unsound::Damaged), "byte {at}");
    }
}

#[test]
fn ticks_in_the_wrong_order_are_damage() {
    let free = Record { jump: Jump::NONE, skip: Skip::NONE, ..record() };
    for wrong in [
        Record { floor: 9, ceiling: 8, high: HighMarks::default(), ..free.clone() },
        Record { ceiling: 214_999_999_998, ..free.clone() },
        Record { used: 4097, ..free.clone() },
        Record { high: HighMarks { current: 4, ..high() }, ..free.clone() },
        Record { jump: Jump { before: 9, since: 8 }, ..free.clone() },
        Record { jump: Jump { before: -2, since: 8 }, ..free.clone() },
        Record { skip: Skip { from: free.ceiling, to: free.ceiling + 9 }, ..free.clone() },
        Record { skip: Skip { from: free.ceiling + 9, to: free.ceiling + 8 }, ..free.clone() },
        Record { skip: Skip { from: free.ceiling + 9, to: NEVER }, ..free },
    ] {
        assert_eq!(Record::from_bytes(&wrong.to_bytes()), Err(Unsound::Damaged), "{wrong:?}");
    }
}
