//! The receive window of a transport: a size, or the buffer that it follows from.

use flowstart_sim::transport::policy::ReceiveBuffer;

/// Keys that make the receive window a size.
const SIZES: [&str; 2] = ["receive_window", "initial_receive_window"];

/// Sets the buffer that the receive window follows from, in any order of the keys. Returns the key whose value is the
/// name of a buffer.
pub(super) fn choose<'a>(keys: &[(&'a str, &'a str)], table: &mut toml::Table) -> Result<Option<&'a str>, String> {
    let name_of = |value: &str| ReceiveBuffer::NAMED.iter().find(|(name, _)| *name == value);
    let named = keys.iter().find_map(|(key, value)| {
        let (_, buffer) = name_of(value).filter(|_| *key == "receive_window")?;
        Some((*key, *value, *buffer))
    });
    let sized = keys.iter().find(|(key, value)| {
        SIZES.contains(key) && *value != "none" && !(*key == "receive_window" && name_of(value).is_some())
    });
    let of_buffer = keys.iter().find(|(key, _)| key.starts_with("receive_buffer."));
    let without = keys.iter().find(|(key, value)| *key == "receive_buffer" && *value == "none");
    let buffer = named.map(|(key, value, _)| (key, value)).or(of_buffer.copied());
    if let Some(((other, value), (key, of))) = sized.or(without).zip(buffer) {
        return Err(format!(
            "{other} is {value} beside {key}={of}; allowed is a size or a buffer that it follows from"
        ));
    }
    if let Some((_, _, buffer)) = named {
        let buffer = toml::Value::try_from(buffer).map_err(|error| error.to_string())?;
        table.insert("receive_buffer".to_owned(), buffer);
    }
    // A window that is given as a size does not follow from a buffer.
    if sized.is_some() || without.is_some() {
        table.remove("receive_buffer");
    }
    let follows = table.contains_key("receive_buffer");
    if follows && keys.contains(&("initial_receive_window", "none")) {
        return Err(
            "initial_receive_window is none; allowed is none only beside a receive_window that is a size".into()
        );
    }
    Ok(named.map(|(key, ..)| key))
}
