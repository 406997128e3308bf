//! The texts of records.

use std::collections::BTreeMap;

use super::*;

const LIMITS: Limits = Limits { ttl: 30_000, max_clock_skew: 10_000, max_ahead: 0 };

fn namespace() -> Namespace {
    let mut created = Ranges::default();
    for number in [3, 1, 0, 7, 2] {
        created.insert(number);
    }
    Namespace {
        id: Token(0x3f0c_5a7d_11e2_b694),
        layout: Layout::NODE,
        limits: LIMITS,
        floor: -1,
        size: 32,
        created,
    }
}

fn line(host: &str) -> Line {
    Line {
        owner: Token(0x55),
        token: Token(0xa1f3),
        is_held: true,
        floor: -1,
        ceiling: 1 << 40,
        expires: 1_795_000_000_000,
        holder: Holder::new(4711, 1_794_000_000_000, "10.0.0.7:8080", host),
    }
}

fn bucket() -> Bucket {
    let free = Line { is_held: false, holder: Holder::default(), ..line("") };
    Bucket::new(Token(1)).with(0, line("a host  é ")).with(7, free)
}

/// Versions of snowdrift share stores.
#[test]
fn records_have_the_same_texts_in_all_versions() {
    assert_eq!(
        namespace().text(),
        "snowdrift2 namespace 3f0c5a7d11e2b694\nlayout 41.3.5.2.12 1 1580486400000\nlimits 30000 10000 0\nfloor -1\nsize 32\nbuckets 0-3 7"
    );
    assert_eq!(
        bucket().text(),
        "snowdrift2 bucket 0000000000000001 -1\n0 held 0000000000000055 0000a1f3 -1 1099511627776 1795000000000 4711 1794000000000 10.0.0.7:8080 a host  é \n7 free 0000000000000055 0000a1f3 -1 1099511627776 1795000000000 0 0 - "
    );
    assert_eq!(Key::Bucket(3, 17).to_string(), "3/17");
    assert_eq!(Namespace::of_text(&namespace().text()), Ok(namespace()));
    assert_eq!(Bucket::of_text(&bucket().text()), Ok(bucket()));
}

#[test]
fn a_key_has_one_spelling() {
    assert_eq!(Key::of_text("namespace"), Some(Key::Namespace));
    assert_eq!(Key::of_text("3/17"), Some(Key::Bucket(3, 17)));
    for text in ["", "x", "03/1", "3/+1", "3/1/0", "3/", "-1/0", "namespace/0", " 3/1"] {
        assert_eq!(Key::of_text(text), None, "{text}");
    }
}

#[test]
fn a_text_that_no_holder_writes_is_refused_by_its_line() {
    let text = namespace().text();
    let with = |from: &str, to: &str| Namespace::of_text(&text.replace(from, to));
    assert_eq!(with("snowdrift2", "snowdrift1"), Err(Unreadable::Format));
    assert_eq!(with("namespace", "bucket"), Err(Unreadable::Line(1)));
    assert_eq!(with("41.3", "99.3"), Err(Unreadable::Line(2)));
    assert_eq!(with(" 10000", ""), Err(Unreadable::Line(3)));
    assert_eq!(with("floor", "color"), Err(Unreadable::Line(4)));
    assert_eq!(with("floor -1", "floor -01"), Err(Unreadable::Line(4)));
    assert_eq!(with("size 32", "size 33"), Err(Unreadable::Line(5)));
    for ranges in ["0-3 4", "3-0", "0-3 2", "7 0", "0-18446744073709551615"] {
        assert_eq!(with("0-3 7", ranges), Err(Unreadable::Line(6)), "{ranges}");
    }
    assert_eq!(Namespace::of_text(&(text.clone() + "\ncolor red")), Err(Unreadable::Line(7)));
    assert_eq!(Namespace::of_text(&(text + &" ".repeat(20_000))), Err(Unreadable::Long(20_124)));
    assert_eq!(Bucket::of_text(""), Err(Unreadable::Format));
    assert_eq!(Bucket::of_text("snowdrift2"), Err(Unreadable::Line(1)));
}

#[test]
fn a_damaged_line_concerns_its_worker_id_alone_and_stays() {
    let text = bucket().text().replace("7 free", "7 gone") + "\n9";
    let found = Bucket::of_text(&text).unwrap();
    assert_eq!(found.damaged.keys().copied().collect::<Vec<_>>(), [7, 9]);
    assert_eq!(found.lines, BTreeMap::from([(0, line("a host  é "))]));
    assert_eq!(found.text(), text);
    // Of two lines of a worker ID, or of none, nobody knows which counts.
    for more in ["\n0 twice", "\nnone", "\n"] {
        assert_eq!(Bucket::of_text(&(bucket().text() + more)), Err(Unreadable::Line(4)));
    }
}

#[test]
fn a_line_with_a_longer_host_or_control_characters_is_damaged() {
    for host in ["x".repeat(65), "\u{1b}[2J a".into()] {
        let text = bucket().text().replace("a host  é ", &host);
        let found = Bucket::of_text(&text).unwrap();
        assert_eq!(found.damaged.keys().copied().collect::<Vec<_>>(), [0]);
        assert_eq!(found.text(), text);
    }
}

#[test]
fn any_text_is_a_record_of_that_text_or_none() {
    for text in [namespace().text(), bucket().text()] {
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            for more in ["", "\0", " ", "\n", "-", "9", "é"] {
                for text in [
                    format!("{}{more}", &text[..at]),
                    format!("{}{more}{}", &text[..at], &text[at..]),
                ] {
                    assert!(
                        Namespace::of_text(&text).is_ok_and(|one| one.text() == text)
                            || Namespace::of_text(&text).is_err()
                    );
                    assert!(
                        Bucket::of_text(&text).is_ok_and(|one| one.text() == text)
                            || Bucket::of_text(&text).is_err()
                    );
                }
            }
        }
    }
}

#[test]
fn a_full_bucket_fits_into_a_text() {
    let most = Line { floor: i64::MIN, ceiling: i64::MIN, expires: i64::MIN, ..line("") };
    let holder = Holder::new(u32::MAX, i64::MIN, &"a".repeat(900), &"é\n".repeat(900));
    assert_eq!((holder.address.len(), holder.host.len()), (64, 64));
    let lines =
        (0..32).map(|at| ((1 << 53) - 1 - at, Line { holder: holder.clone(), ..most.clone() }));
    let full = Bucket { lines: lines.collect(), ..Bucket::new(Token(u64::MAX)) };
    assert!(full.text().len() <= MOST_BYTES, "{} bytes", full.text().len());
    let usual = line("web-1.example.com").to_string().len();
    assert!(usual <= 130, "{usual} bytes");
}

#[test]
fn ranges_join_where_the_text_is_too_long() {
    let mut one = namespace();
    for number in [5, 6, 4, 9] {
        one.count(number);
    }
    assert_eq!(one.created.to_string(), " 0-7 9");
    assert!(one.created.contains(4) && !one.created.contains(8) && !one.created.contains(10));
    for number in 0..10_000 {
        one.count(number * 1000);
    }
    assert!(one.text().len() <= MOST_BYTES);
    assert!((0..10_000).all(|number| one.created.contains(number * 1000)));
    assert_eq!(Namespace::of_text(&one.text()), Ok(one));
}

#[test]
fn damage_begins_an_hour_above_the_horizon() {
    let layout = Layout::new([41, 0, 0, 0, 1], 1, 0);
    assert_eq!(LIMITS.cap(layout, 1000), 41_000);
    assert_eq!(LIMITS.horizon(layout, 1000), 51_000);
    let last = 51_000 + HOUR_MS;
    assert_eq!([last, last + 1].map(|tick| LIMITS.is_damage(layout, tick, 1000)), [false, true]);
}
