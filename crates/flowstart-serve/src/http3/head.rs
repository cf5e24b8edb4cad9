//! Pseudo-header fields of messages, before the HTTP library sees them (RFC 9114, section 4.3).
//!
//! h3 takes the last of repeated pseudo-header fields, does not look at their order, lets those of responses pass in
//! requests and the other way round, and does not look for them in trailers.
//! Only as much of a field section is read as this takes (RFC 9204, section 4.5): which names come in which order.
//! There is no dynamic table. A section that cannot be read is left to h3, which ends the connection for it.

/// Entries of the static table (RFC 9204, appendix A).
const STATIC_ENTRIES: u64 = 99;
/// Those of them that are interim responses: 103 and 100.
const INTERIM_ENTRIES: [u64; 2] = [24, 63];
/// The bits with which a name in Huffman's code begins if its first character is a colon (RFC 7541, appendix B), in the
/// place of its first byte.
const COLON: u8 = 0b101_1100 << 1;
/// Names of pseudo-header fields, as they are and in Huffman's code, which writes each in one way.
const NAMES: [(Name, &[u8], &[u8]); 5] = [
    (Name::Method, b":method", &[0xb9, 0x49, 0x53, 0x39, 0xe4]),
    (Name::Scheme, b":scheme", &[0xb8, 0x82, 0x4e, 0x5a, 0x4b]),
    (Name::Authority, b":authority", &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f]),
    (Name::Path, b":path", &[0xb9, 0x58, 0xd3, 0x3f]),
    (Name::Status, b":status", &[0xb8, 0x84, 0x8d, 0x36, 0xa3]),
];

/// What a field section is to its message (RFC 9114, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// The head of a request.
    Request,
    /// The head of a response, final or not.
    Response,
    /// What follows the content.
    Trailers,
}

impl Section {
    /// Whether it may have this pseudo-header field (RFC 9114, sections 4.3, 4.3.1 and 4.3.2).
    fn allows(self, name: Name) -> bool {
        match self {
            Self::Request => matches!(name, Name::Method | Name::Scheme | Name::Authority | Name::Path),
            Self::Response => name == Name::Status,
            Self::Trailers => false,
        }
    }
}

/// Whose name a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    Status,
    /// A pseudo-header field that no message has.
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
            24..=28 | 63..=71 => Some(Self::Status),
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

/// Whether the pseudo-header fields of these fields make their message malformed (RFC 9114, section 4.1.2).
pub(super) fn is_malformed(section: Section, fields: &[u8]) -> bool {
    first_defect(section, fields).unwrap_or(false)
}

/// Whether a value of `:path` begins as one may: with a slash, or with the asterisk of OPTIONS (RFC 9114, section
/// 4.3.1). Their codes are 011000 and 11111001 (RFC 7541, appendix B).
fn is_path(value: &[u8], is_huffman: bool) -> bool {
    let first = value.first().copied();
    if is_huffman {
        first.is_some_and(|first| first & 0b1111_1100 == 0b0110_0000 || first == 0b1111_1001)
    } else {
        matches!(first, Some(b'/' | b'*'))
    }
}

/// Whether these are the fields of a response that is not the final one: `:status` is from 100 to 199 (RFC 9114,
/// section 4.1).
pub(super) fn is_interim(fields: &[u8]) -> bool {
    let mut reader = Reader(fields);
    let status = |reader: &mut Reader<'_>| {
        reader.number(8)?;
        reader.number(7)?;
        while let Some(&first) = reader.0.first() {
            let entry = (first >= 0b1100_0000).then(|| Reader(reader.0).number(6)).flatten();
            match reader.field()? {
                (Name::Status, None) => return entry.map(|entry| INTERIM_ENTRIES.contains(&entry)),
                // The code of the figure one is 00001 (RFC 7541, appendix B).
                (Name::Status, Some((value, true))) => return value.first().map(|first| first >> 3 == 1),
                (Name::Status, Some((value, false))) => return Some(value.first() == Some(&b'1')),
                _ => {}
            }
        }
        None
    };
    status(&mut reader).unwrap_or(false)
}

/// Whether there is a defect; `None` if the fields cannot be read so far.
fn first_defect(section: Section, fields: &[u8]) -> Option<bool> {
    let mut reader = Reader(fields);
    // The prefix (RFC 9204, section 4.5.1).
    reader.number(8)?;
    reader.number(7)?;
    let (mut seen, mut is_regular) = ([false; NAMES.len()], false);
    while !reader.0.is_empty() {
        let (name, value) = reader.field()?;
        if name == Name::Path && value.is_some_and(|(bytes, is_huffman)| !is_path(bytes, is_huffman)) {
            return Some(true);
        }
        match NAMES.iter().position(|(known, ..)| *known == name) {
            Some(place) if is_regular || seen[place] || !section.allows(name) => return Some(true),
            Some(place) => seen[place] = true,
            None if name == Name::Foreign => return Some(true),
            None => is_regular = true,
        }
    }
    Some(false)
}

/// Bytes of a string, and whether they are in Huffman's code.
type Text<'a> = (&'a [u8], bool);

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

    /// A string whose length is behind the first bits of a byte, before which a bit says whether it is in Huffman's
    /// code.
    fn string(&mut self, bits: u32) -> Option<Text<'a>> {
        let is_huffman = *self.0.first()? & 1 << bits != 0;
        let length = usize::try_from(self.number(bits)?).ok()?;
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some((string, is_huffman))
    }

    /// The name of the next field, and its value if it has one of its own (RFC 9204, sections 4.5.2, 4.5.4 and 4.5.6),
    /// without those of a dynamic table.
    fn field(&mut self) -> Option<(Name, Option<Text<'a>>)> {
        let name = match *self.0.first()? {
            0b1100_0000.. => return Some((Name::of_entry(self.number(6)?)?, None)),
            0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => Name::of_entry(self.number(4)?)?,
            0b0010_0000..=0b0011_1111 => {
                let (name, is_huffman) = self.string(3)?;
                Name::of_literal(name, is_huffman)
            }
            _ => return None,
        };
        Some((name, Some(self.string(7)?)))
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
        [&length, name, &[1, b'/']].concat()
    }

    fn refused_in(section: Section, fields: &[&[u8]]) -> bool {
        is_malformed(section, &[&[0, 0], &fields.concat()[..]].concat())
    }

    fn refused(fields: &[&[u8]]) -> bool {
        refused_in(Section::Request, fields)
    }

    #[test]
    fn a_request_has_its_pseudo_fields_once_and_first() {
        // GET, https, `:authority` and `:path` by their entries, and `accept: */*`.
        let (method, scheme, authority, path, accept) =
            (&[0xd1][..], &[0xd7][..], &[0x50, 1, b'x'][..], &[0x51, 1, b'/'][..], &[0xdd][..]);
        assert!(!refused(&[method, scheme, authority, path, accept]));
        assert!(refused(&[method, scheme, authority, path, path]));
        assert!(refused(&[method, scheme, accept, authority, path]));
        for (name, plain, huffman) in NAMES.into_iter().filter(|(name, ..)| *name != Name::Status) {
            let (plain, huffman) = (literal(plain, false), literal(huffman, true));
            assert!(!refused(&[&huffman]) && !refused(&[&plain, accept]), "{name:?}");
            assert!(refused(&[&plain, &huffman]) && refused(&[accept, &huffman]), "{name:?}");
        }
    }

    #[test]
    fn a_path_begins_with_a_slash_or_is_an_asterisk() {
        let with = |value: &[u8]| refused(&[&[0x51, value.len() as u8], value]);
        // The Huffman codes of a slash, an asterisk, a question mark and a number sign, filled up with ones.
        let in_huffman = |code: &[u8]| refused(&[&[0x51, 0x80 | code.len() as u8], code]);
        assert!(!with(b"/") && !with(b"/a?b#c") && !with(b"*"));
        assert!(with(b"") && with(b"?a") && with(b"#a") && with(b"a") && with(b"http://a/"));
        assert!(!in_huffman(&[0b0110_0011]) && !in_huffman(&[0b1111_1001]));
        assert!(in_huffman(&[]) && in_huffman(&[0xff, 0b0011_1111]) && in_huffman(&[0xff, 0b1010_1111]));
    }

    #[test]
    fn an_interim_response_is_told_from_a_final_one() {
        let interim = |fields: &[&[u8]]| is_interim(&[&[0, 0], &fields.concat()[..]].concat());
        // Entries 24 (103), 63 (100), 25 (200) and 64 (204), and `accept` behind and before.
        assert!(interim(&[&[0xd8]]) && interim(&[&[0xd8], &[0xdd]]) && interim(&[&[0xff, 0]]));
        assert!(!interim(&[&[0xd9]]) && !interim(&[&[0xff, 1]]) && !interim(&[&[0xdd]]) && !interim(&[]));
        // The name by its entry, and 102 or 200 as text and in Huffman's code.
        let value = |text: &[u8]| interim(&[&[0x5f, 0x09, text.len() as u8], text]);
        assert!(value(b"102") && !value(b"200"));
        let coded = |text: &[u8]| interim(&[&[0x5f, 0x09, 0x80 | text.len() as u8], text]);
        assert!(coded(&[0b0000_1000, 0b0000_1011]) && !coded(&[0b0001_0000, 0b0000_0111]));
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
    fn a_response_has_its_status_once_and_first_and_trailers_have_none() {
        // `:status: 200` by its entry, by its name's entry, and with its name, plain and in Huffman's code.
        let [plain, huffman] = [(&b":status"[..], false), (&[0xb8, 0x84, 0x8d, 0x36, 0xa3], true)]
            .map(|(name, is_huffman)| literal(name, is_huffman));
        let accept = &[0xdd][..];
        for status in [&[0xd9][..], &[0x5f, 9, 1, b'x'], &plain, &huffman] {
            assert!(!refused_in(Section::Response, &[status, accept]), "{status:?}");
            for fields in [&[status, status][..], &[accept, status], &[status, &[0xd1]], &[status, &[0xc1]]] {
                assert!(refused_in(Section::Response, fields), "{fields:?}");
            }
            assert!(refused_in(Section::Trailers, &[status]) && refused(&[status]), "{status:?}");
        }
        assert!(!refused_in(Section::Trailers, &[accept, accept]));
        assert!(refused_in(Section::Trailers, &[&literal(b":path", false)]));
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_library() {
        // Cut off, an entry of the dynamic table, ones that are not there (63 + 99, 63 + 127 + 128), an integer without
        // end.
        for section in
            [&[][..], &[0], &[0, 0, 0x51], &[0, 0, 0x80], &[0, 0, 0xff, 99], &[0, 0, 0xff, 0xff, 1], &[0xff; 20]]
        {
            assert!(!is_malformed(Section::Request, section), "{section:?}");
        }
    }
}
