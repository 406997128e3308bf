use super::*;

fn custom(widths: [u8; 5]) -> Result<Layout, Fault> {
    Layout::new(widths, 1, 0).checked()
}

#[test]
fn the_default_layout_has_63_bits() {
    assert_eq!(Layout::NODE.checked(), Ok(Layout::NODE));
    assert_eq!(Layout::NODE.bits(), 63);
}

#[test]
fn widths_are_checked_at_their_bounds() {
    assert!(custom([62, 0, 0, 0, 1]).is_ok());
    assert!(custom([1, 4, 4, 1, 53]).is_ok());
    assert_eq!(custom([62, 0, 0, 1, 1]), Err(fault!("layout-too-wide", bits: 64u32)));
    for (name, widths) in [
        ("timestampBits", [0, 0, 0, 0, 12]),
        ("timestampBits", [63, 0, 0, 0, 1]),
        ("datacenterBits", [5, 54, 0, 0, 1]),
        ("workerBits", [5, 0, 54, 0, 1]),
        ("clockBackBits", [41, 0, 0, 5, 12]),
        ("sequenceBits", [41, 0, 0, 0, 0]),
        ("sequenceBits", [1, 0, 0, 0, 54]),
    ] {
        match custom(widths) {
            Err(fault) => assert_eq!(fault.details[0], ("name", name.into())),
            other => panic!("{name}: {other:?}"),
        }
    }
    for tick_ms in [0, -1, MAX_TICK_MS + 1] {
        assert!(Layout { tick_ms, ..Layout::NODE }.checked().is_err());
    }
    for epoch_ms in [DATE_LIMIT_MS + 1, -DATE_LIMIT_MS - 1] {
        assert!(Layout { epoch_ms, ..Layout::NODE }.checked().is_err());
    }
}

#[test]
fn a_tick_lasts_from_its_start_to_the_next() {
    let uid = Layout::new([28, 0, 22, 0, 13], 1000, 1_463_673_600_000);
    assert_eq!(uid.tick_at(uid.epoch_ms - 1), -1);
    assert_eq!(uid.tick_at(uid.epoch_ms), 0);
    assert_eq!(uid.tick_at(uid.epoch_ms + 999), 0);
    assert_eq!(uid.tick_at(uid.epoch_ms + 1000), 1);
    assert_eq!(uid.tick_at(uid.end_ms() - 1), uid.last_tick());
}
