//! The reader of specs, on texts that nobody writes on purpose.

use flowstart_core::spec::{Fraction, Spec, names};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use proptest::prelude::*;

/// Asks for everything in every way.
fn read_all(text: &str) {
    let Ok(mut spec) = Spec::parse("--spec", text) else { return };
    let errors = [
        spec.read::<Rate>("rate").err(),
        spec.within("size", Bytes::new(1)..=Bytes::new(9)).err(),
        spec.list::<Duration>("rtts").err(),
        spec.switch("on").err(),
        spec.one_of("order", &[("up", 1), ("down", 2)]).err(),
        spec.read_with("loss", str::parse::<Fraction>).err(),
        spec.rest().err(),
        spec.finish().err(),
    ];
    for error in errors.into_iter().flatten() {
        assert!(error.field == "--spec" && error.value == spec.text() && !error.problem.is_empty(), "{error}");
    }
    while spec.word().is_some() {}
    let other = spec.rest_as("other");
    assert!(other.name() == "other" && (other.unasked() == spec.unasked()));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,60}") {
        read_all(&text);
    }

    #[test]
    fn no_text_of_its_own_letters_makes_it_panic(
        text in "[ :=,/%a0.-]{0,30}|(on|up|rate|size|rtts|loss)[ :=,/0-9%msB]{0,20}",
    ) {
        read_all(&text);
    }

    #[test]
    fn case_and_underscores_change_neither_names_nor_keys(
        name in "[a-z][a-z0-9-]{0,8}",
        keys in prop::collection::btree_map("[a-z][a-z_]{0,6}", "[a-z0-9./:%=-]{1,9}", 0..6),
        spelling in prop::collection::vec(any::<bool>(), 80),
    ) {
        let mut spelling = spelling.into_iter().cycle();
        let mut other = |text: &str| -> String {
            let spell = |letter: char| match (spelling.next(), letter) {
                (Some(true), '-') => '_',
                (Some(true), '_') => '-',
                (Some(true), letter) => letter.to_ascii_uppercase(),
                _ => letter,
            };
            text.chars().map(spell).collect()
        };
        let written: Vec<String> = keys.iter().map(|(key, value)| format!("{}={value}", other(key))).collect();
        let text = format!("{}:{}", other(&name), written.join(","));
        let spec = Spec::parse("--spec", &text).unwrap();
        prop_assert_eq!(spec.choose(&["other", &name], "").unwrap(), &name);
        let read: Vec<(String, &str)> = spec.rest().unwrap();
        prop_assert_eq!(read, keys.iter().map(|(key, value)| (key.clone(), &**value)).collect::<Vec<_>>());
    }

    #[test]
    fn a_rate_is_the_same_in_every_spelling(number in 1u64..100_000, tenths in 0u64..10, prefix in 0usize..4) {
        let (prefix, factor) = [("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)][prefix];
        let expected = Rate::from_bits_per_sec((number * 10 + tenths) * factor / 10);
        prop_assume!(factor > 1 || tenths == 0);
        let capital = prefix.to_ascii_uppercase();
        for unit in ["bit", "bit/s", "bps", "BIT", "Bit/s"] {
            for prefix in [prefix, &capital] {
                for space in ["", " "] {
                    let text = format!("{number}.{tenths}{space}{prefix}{unit}");
                    prop_assert_eq!(text.parse::<Rate>(), Ok(expected), "{}", text);
                }
            }
        }
        if factor > 1 {
            prop_assert_eq!(format!("{number}.{tenths}{capital}").parse::<Rate>(), Ok(expected));
        }
        // Bytes are never taken for bits, and what the refusal suggests is eight times as much.
        let error = format!("{number}{prefix}B/s").parse::<Rate>().unwrap_err().to_string();
        let same = error.rsplit(' ').next().unwrap().parse::<Rate>();
        prop_assert_eq!(same, Ok(Rate::from_bits_per_sec(number * factor * 8)), "{}", error);
    }

    #[test]
    fn one_slip_in_a_name_still_finds_it(name in "[a-z]{4,8}-[a-z]{4,8}", place in 0usize..9, letter in "[0-9]") {
        let place = place % name.len();
        let slip = format!("{}{letter}{}", &name[..place], &name[place + 1..]);
        prop_assert_eq!(names::closest(&slip, &["unrelated-words", &name]), [&name]);
    }

    #[test]
    fn what_is_written_out_and_read_again_is_the_same(
        name in "[a-z][a-z0-9-]{0,8}",
        keys in prop::collection::btree_map("[a-z][a-z_.]{0,6}", "[a-z0-9./:%=-]{1,9}", 0..6),
    ) {
        let written: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let text = format!("{name}:{}", written.join(","));
        let spec = Spec::parse("--spec", &text).unwrap();
        prop_assert_eq!(spec.name(), name);
        let read: Vec<String> = spec.rest().unwrap().iter().map(|(key, value)| format!("{key}={value}")).collect();
        prop_assert_eq!(&read, &written);
        // Spaces around names, keys and values mean nothing.
        let spaced = text.replacen(':', " : ", 1).replace(',', " , ");
        let spaced = Spec::parse("--spec", &spaced).unwrap();
        prop_assert_eq!((spaced.name(), spaced.rest()), (spec.name(), spec.rest()));
    }
}
