//! The reader of specs, on texts that nobody writes on purpose.

use flowstart_core::spec::{Fraction, Spec};
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
