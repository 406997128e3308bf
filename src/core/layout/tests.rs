use super::*;

fn custom(widths: [u8; 5]) -> Result<Layout, Fault> {
    Layout::new(widths, 1, 0).checked()
}

#[test]
fn every_preset_is_a_layout_of_63_bits_or_of_those_of_a_number() {
    for (name, layout) in Layout::PRESETS {
        assert_eq!(layout.checked(), Ok(layout), "{name}");
        assert_eq!(layout.bits(), if name == "safe" { 53 } else { 63 }, "{name}");
    }
}

#[test]
fn known_ids_decode_and_compose() {
    // The Twitter ID is public. The Discord ID is the example of its API reference. The uid ID is from an article on
    // UidGenerator. All three are also in `__test__/core/vectors.json`.
    for (layout, id, unix_ms, dc, worker, sequence) in [
        (Layout::TWITTER, 1541815603606036480, 1656432460105, 11, 26, 0),
        (Layout::DISCORD, 175928847299117063, 1462015105796, 1, 0, 7),
        (Layout::UID, 3200169789968523265, 1556810799000, 0, 21, 1),
    ] {
        let fields = layout.decode(id).unwrap();
        assert_eq!(layout.tick_start_ms(fields.tick), unix_ms);
        assert_eq!(
            (fields.datacenter_id, fields.worker_id, fields.clock_back, fields.sequence),
            (dc, worker, 0, sequence)
        );
        assert_eq!(layout.encode(&fields), Ok(id));
    }
}

#[test]
fn the_largest_id_of_a_63_bit_layout_is_the_largest_signed_integer() {
    let last = Layout::NODE.decode(i64::MAX as u64).unwrap();
    assert_eq!(
        last,
        Fields {
            tick: (1 << 41) - 1,
            datacenter_id: 7,
            worker_id: 31,
            clock_back: 3,
            sequence: 4095
        }
    );
    assert_eq!(Layout::NODE.encode(&last), Ok(i64::MAX as u64));
    assert_eq!(
        Layout::NODE.decode(i64::MAX as u64 + 1),
        Err(fault!("id-too-wide", id: (1u64 << 63).to_string(), bits: 63u32))
    );
}

#[test]
fn a_field_one_past_its_range_is_refused_not_masked() {
    let fits = Fields { tick: 1, datacenter_id: 7, worker_id: 31, clock_back: 3, sequence: 4095 };
    assert!(Layout::NODE.encode(&fits).is_ok());
    for (name, fields) in [
        ("tick", Fields { tick: 1 << 41, ..fits }),
        ("tick", Fields { tick: -1, ..fits }),
        ("datacenterId", Fields { datacenter_id: 8, ..fits }),
        ("workerId", Fields { worker_id: 32, ..fits }),
        ("clockBack", Fields { clock_back: 4, ..fits }),
        ("sequence", Fields { sequence: 4096, ..fits }),
    ] {
        match Layout::NODE.encode(&fields) {
            Err(fault) => assert_eq!(fault.values[0], ("name", name.into())),
            other => panic!("{name}: {other:?}"),
        }
    }
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
            Err(fault) => assert_eq!(fault.values[0], ("name", name.into())),
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
fn a_tick_holds_the_moments_from_its_start_to_the_next() {
    let uid = Layout::UID;
    assert_eq!(uid.tick_at(uid.epoch_ms - 1), -1);
    assert_eq!(uid.tick_at(uid.epoch_ms), 0);
    assert_eq!(uid.tick_at(uid.epoch_ms + 999), 0);
    assert_eq!(uid.tick_at(uid.epoch_ms + 1000), 1);
    assert_eq!(uid.tick_within(uid.end_ms() - 1), Ok(uid.last_tick()));
    assert!(uid.tick_within(uid.end_ms()).is_err());
    assert!(uid.tick_within(uid.epoch_ms - 1).is_err());
}

#[test]
fn a_time_beyond_any_date_is_refused() {
    let wide =
        Layout { timestamp_bits: 62, tick_ms: MAX_TICK_MS, ..custom([62, 0, 0, 0, 1]).unwrap() };
    assert_eq!(wide.decode(1 << 62), Err(fault!("beyond-date", id: (1u64 << 62).to_string())));
    assert!(wide.decode(3).is_ok());
}
