//! Pseudo-header fields of a request, before the HTTP library sees them (RFC 9114, sections 4.3 and 4.3.1).
//!
//! h3 takes the last of repeated pseudo-header fields, does not look at their order, and lets those of responses pass.
//! Only as much of a field section is read as this takes (RFC 9204, section 4.5): which names come in which order.
//! There is no dynamic table. A section that cannot be read is left to h3, which ends the connection for it.

/// Entries of the static table (RFC 9204, appendix A).
const STATIC_ENTRIES: u64 = 99;
/// The bits with which a name in Huffman's code begins if its first character is a colon (RFC 7541, appendix B), in the
/// place of its first byte.
const COLON: u8 = 0b101_1100 << 1;
/// Names of a request's pseudo-header fields, as they are and in Huffman's code, which writes each in one way.
const NAMES: [(Name, &[u8], &[u8]); 4] = [
    (Name::Method, b":method", &[0xb9, 0x49, 0x53, 0x39, 0xe4]),
    (Name::Scheme, b":scheme", &[0xb8, 0x82, 0x4e, 0x5a, 0x4b]),
    (Name::Authority, b":authority", &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f]),
    (Name::Path, b":path", &[0xb9, 0x58, 0xd3, 0x3f]),
];

/// Whose name a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    /// A pseudo-header field that no request has.
    Foreign,
    Regular,
}

impl Name {
    /// Of an entry of the static table.
    fn of_entry(index: u64) -> Option<Self> {
        match index {
            0 => Some(Self::Authority),
            1 => Some(Self::Path),
            15..=21 => Some(Self::Method),
            22..=23 => Some(Self::Scheme),
            24..=28 | 63..=71 => Some(Self::Foreign),
            other => (other < STATIC_ENTRIES).then_some(Self::Regular),
        }
    }

    fn of_literal(bytes: &[u8], is_huffman: bool) -> Self {
        let is_pseudo =
            bytes.first().is_some_and(|first| if is_huffman { first & 0xfe == COLON } else { *first == b':' });
        if !is_pseudo {
            return Self::Regular;
        }
        let found = NAMES.iter().find(|(_, plain, huffman)| bytes == if is_huffman { *huffman } else { *plain });
        found.map_or(Self::Foreign, |(name, ..)| *name)
    }
}

/// Whether the pseudo-header fields of this field section make its request malformed (RFC 9114, section 4.1.2).
pub(super) fn is_malformed(section: &[u8]) -> bool {
    first_defect(section).unwrap_or(false)
}

/// Whether there is a defect; `None` if the section cannot be read so far.
fn first_defect(section: &[u8]) -> Option<bool> {
    let mut reader = Reader(section);
    // The prefix (RFC 9204, section 4.5.1).
    reader.number(8)?;
    reader.number(7)?;
    let (mut seen, mut is_regular) = ([false; NAMES.len()], false);
    while !reader.0.is_empty() {
        let name = reader.field()?;
        match NAMES.iter().position(|(known, ..)| *known == name) {
            Some(place) if is_regular || seen[place] => return Some(true),
            Some(place) => seen[place] = true,
            None if name == Name::Foreign => return Some(true),
            None => is_regular = true,
        }
    }
    Some(false)
}

/// What is not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// An integer behind the first bits of a byte (RFC 7541, section 5.1).
    fn number(&mut self, bits: u32) -> Option<u64> {
        let most = u64::from(u8::MAX >> (8 - bits));
        let mut value = u64::from(self.byte()?) & most;
        if value < most {
            return Some(value);
        }
        for place in 0..9 {
            let byte = self.byte()?;
            value = value.checked_add(u64::from(byte & 0x7f) << (7 * place))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A string whose length is behind the first bits of a byte.
    fn string(&mut self, bits: u32) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number(bits)?).ok()?;
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(string)
    }

    /// The name of the next field (RFC 9204, sections 4.5.2, 4.5.4 and 4.5.6), without those of a dynamic table.
    fn field(&mut self) -> Option<Name> {
        let first = *self.0.first()?;
        match first {
            0b1100_0000.. => Name::of_entry(self.number(6)?),
            0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => {
                let name = Name::of_entry(self.number(4)?)?;
                self.string(7)?;
                Some(name)
            }
            0b0010_0000..=0b0011_1111 => {
                let name = Name::of_literal(self.string(3)?, first & 0b1000 != 0);
                self.string(7)?;
                Some(name)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field with its name.
    fn literal(name: &[u8], is_huffman: bool) -> Vec<u8> {
        let huffman = if is_huffman { 0b1000 } else { 0 };
        let length = match name.len() {
            short @ 0..7 => vec![0x20 | huffman | short as u8],
            long => vec![0x27 | huffman, (long - 7) as u8],
        };
        [&length, name, &[1, b'x']].concat()
    }

    fn refused(fields: &[&[u8]]) -> bool {
        is_malformed(&[&[0, 0], &fields.concat()[..]].concat())
    }

    #[test]
    fn a_request_has_its_pseudo_fields_once_and_first() {
        // GET, https, `:authority` and `:path` by their entries, and `accept: */*`.
        let (method, scheme, authority, path, accept) =
            (&[0xd1][..], &[0xd7][..], &[0x50, 1, b'x'][..], &[0x51, 1, b'/'][..], &[0xdd][..]);
        assert!(!refused(&[method, scheme, authority, path, accept]));
        assert!(refused(&[method, scheme, authority, path, path]));
        assert!(refused(&[method, scheme, accept, authority, path]));
        for (name, plain, huffman) in NAMES {
            let (plain, huffman) = (literal(plain, false), literal(huffman, true));
            assert!(!refused(&[&huffman]) && !refused(&[&plain, accept]), "{name:?}");
            assert!(refused(&[&plain, &huffman]) && refused(&[accept, &huffman]), "{name:?}");
        }
    }

    #[test]
    fn requests_have_no_other_pseudo_fields() {
        // `:status: 200` by its entry, with its name, and others.
        assert!(refused(&[&[0xd9]]));
        for name in [":status", ":protocol", ":", ":Path", ":path "] {
            assert!(refused(&[&literal(name.as_bytes(), false)]), "{name}");
        }
        // A colon in Huffman's code, and what is not the shortest way to write `:path`.
        for name in [&[0xb9][..], &[0xb9, 0x58, 0xd3, 0x3f, 0xff]] {
            assert!(refused(&[&literal(name, true)]), "{name:?}");
        }
        assert!(!refused(&[&literal(b"path", false), &literal(b"path", false)]));
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_library() {
        // Cut off, an entry of the dynamic table, ones that are not there (63 + 99, 63 + 127 + 128), an integer without
        // end.
        for section in
            [&[][..], &[0], &[0, 0, 0x51], &[0, 0, 0x80], &[0, 0, 0xff, 99], &[0, 0, 0xff, 0xff, 1], &[0xff; 20]]
        {
            assert!(!is_malformed(section), "{section:?}");
        }
    }
}
