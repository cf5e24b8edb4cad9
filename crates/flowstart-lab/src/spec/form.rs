//! The forms of specs that users can list: what may be written, with an example of each.

/// What users may write before the colon of a spec.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its name, or what stands for a name in capitals.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// A valid spec.
    pub example: &'static str,
    /// The keys behind the colon.
    pub keys: &'static [Key],
}

/// A key of a spec. `Of` is what is read with it, where it matters.
#[derive(Clone, Copy, Debug)]
pub struct Key<Of = ()> {
    /// Its name.
    pub name: &'static str,
    /// What its values are: a rate, a time, or the words that are allowed.
    pub values: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Its value if it is not written; empty: it is needed.
    pub default: &'static str,
    /// A valid use, with the keys that it needs; empty: the form's example has one.
    pub example: &'static str,
    /// Whether it gives something that is never between two sockets; `None`: sockets have all that it gives.
    only_simulated: Option<fn(&Of) -> bool>,
}

impl<Of> Key<Of> {
    pub(super) const fn new(
        name: &'static str,
        values: &'static str,
        meaning: &'static str,
        default: &'static str,
    ) -> Self {
        Self { name, values, meaning, default, example: "", only_simulated: None }
    }

    pub(super) const fn such_as(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Between two sockets there is never what the key gives, and with it this is true.
    pub(super) const fn only_simulated(self, is_there: fn(&Of) -> bool) -> Self {
        Self { only_simulated: Some(is_there), ..self }
    }

    /// What users are told of it.
    pub(super) fn told(&self) -> Key {
        let Self { name, values, meaning, default, example, .. } = *self;
        Key { name, values, meaning, default, example, only_simulated: None }
    }
}

/// The first of these keys by which there is something that is never between two sockets.
pub(super) fn only_simulated<Of>(keys: &[Key<Of>], of: &Of) -> Option<&'static str> {
    let is_there = |key: &&Key<Of>| key.only_simulated.is_some_and(|is_there| is_there(of));
    keys.iter().find(is_there).map(|key| key.name)
}

/// The names of forms.
pub(super) fn names(forms: &[Form]) -> Vec<&'static str> {
    forms.iter().map(|form| form.name).collect()
}

/// The names of the keys that an error about the key `nothing` allows, in alphabetical order: those that the parser
/// reads.
#[cfg(test)]
pub(super) fn keys_in(error: &super::InputError) -> Vec<&str> {
    let (_, allowed) = error.problem.split_once("allowed are ").unwrap_or_else(|| panic!("{error}"));
    let mut keys: Vec<&str> = allowed.split(", ").collect();
    keys.sort_unstable();
    keys
}

/// The names of declared keys, in alphabetical order.
#[cfg(test)]
pub(super) fn declared<'k>(keys: impl IntoIterator<Item = &'k Key>) -> Vec<&'static str> {
    let mut names: Vec<&str> = keys.into_iter().map(|key| key.name).collect();
    names.sort_unstable();
    names
}
