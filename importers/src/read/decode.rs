//! Bytes to text. Results redirected by Windows shells arrive as UTF-16 with a byte order mark, or
//! as UTF-8 with one (jqlang/jq#2351, openwall/john#2802). A mark decides; nothing is guessed, no
//! bad unit becomes U+FFFD, and the hashed artifact stays the original bytes. The module needs the
//! standard library only.

use std::borrow::Cow;
use std::fmt;

/// Bytes looked at to recognize UTF-16 without a mark.
const SNIFFED_BYTES: usize = 4096;

/// How a file's bytes spell its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8 without a mark.
    Utf8,
    /// UTF-8 behind `EF BB BF`.
    Utf8Bom,
    /// Little-endian UTF-16 behind `FF FE`.
    Utf16LeBom,
    /// Big-endian UTF-16 behind `FE FF`.
    Utf16BeBom,
}

impl Encoding {
    /// Returns the name stored beside an artifact: `utf-8`, `utf-8-bom`, `utf-16le-bom`,
    /// `utf-16be-bom`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf8Bom => "utf-8-bom",
            Self::Utf16LeBom => "utf-16le-bom",
            Self::Utf16BeBom => "utf-16be-bom",
        }
    }

    /// True when the text had to be converted to UTF-8.
    pub const fn is_converted(self) -> bool {
        matches!(self, Self::Utf16LeBom | Self::Utf16BeBom)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A file's text and what its bytes were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text without a byte order mark, line ends as in the file.
    pub text: Cow<'a, str>,
    /// What the bytes were.
    pub encoding: Encoding,
}

/// Why bytes are no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The text ends inside a code unit or a character.
    Truncated {
        /// What the text is up to there.
        encoding: Encoding,
        /// Offset in the file of the first byte of the incomplete unit.
        offset: usize,
    },
    /// A code unit or byte that the encoding forbids.
    Malformed {
        /// What the text is up to there.
        encoding: Encoding,
        /// Offset in the file.
        offset: usize,
        /// What stands there: `surrogate D800 without its pair`, `byte FF`.
        found: String,
    },
    /// UTF-16 without a byte order mark: every second byte is zero.
    Unmarked {
        /// `utf-16le` or `utf-16be`.
        looks_like: &'static str,
        /// Offset of the first zero byte.
        offset: usize,
    },
    /// A NUL: the file is no text.
    Binary {
        /// Offset of the NUL.
        offset: usize,
    },
}

impl DecodeError {
    /// Returns the offset in the file of the byte that is wrong.
    pub const fn offset(&self) -> usize {
        match self {
            Self::Truncated { offset, .. }
            | Self::Malformed { offset, .. }
            | Self::Unmarked { offset, .. }
            | Self::Binary { offset } => *offset,
        }
    }

    /// True when the text is cut, false when it is none.
    pub const fn is_truncated(&self) -> bool {
        matches!(self, Self::Truncated { .. })
    }

    /// Says what can be done about it, where something can.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unmarked { .. } => Some(
                "save the file as UTF-8 (`iconv -f UTF-16LE -t UTF-8`), or write it with a mark",
            ),
            Self::Truncated { .. } => Some("copy the file again, its end is missing"),
            Self::Malformed { .. } | Self::Binary { .. } => None,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { encoding, offset } => {
                write!(f, "the {encoding} text is cut inside a character at byte {offset}")
            }
            Self::Malformed { encoding, offset, found } => {
                write!(f, "the file is not {encoding}: {found} at byte {offset}")
            }
            Self::Unmarked { looks_like, offset } => write!(
                f,
                "every second byte is zero (first at byte {offset}): this looks like {looks_like} \
                 without a byte order mark"
            ),
            Self::Binary { offset } => {
                write!(f, "the file is binary, no text: NUL at byte {offset}")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// Decodes a file's bytes by their byte order mark, UTF-8 without one.
///
/// UTF-8 is borrowed, UTF-16 is converted. Nothing is replaced.
///
/// # Errors
/// [`DecodeError`] with the byte offset when the bytes are cut, malformed, unmarked UTF-16 or
/// binary.
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, DecodeError> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return decode_utf8(rest, Encoding::Utf8Bom, 3);
    }
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return decode_utf16(rest, Encoding::Utf16LeBom, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return decode_utf16(rest, Encoding::Utf16BeBom, u16::from_be_bytes);
    }
    decode_utf8(bytes, Encoding::Utf8, 0)
}

fn decode_utf8(bytes: &[u8], encoding: Encoding, mark: usize) -> Result<Decoded<'_>, DecodeError> {
    if let Some(nul) = bytes.iter().position(|byte| *byte == 0) {
        let binary = DecodeError::Binary { offset: mark + nul };
        return Err(find_unmarked(bytes, mark).unwrap_or(binary));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Decoded { text: Cow::Borrowed(text), encoding }),
        Err(error) => Err(utf8_error(bytes, encoding, mark, error)),
    }
}

fn utf8_error(
    bytes: &[u8],
    encoding: Encoding,
    mark: usize,
    error: std::str::Utf8Error,
) -> DecodeError {
    let valid = error.valid_up_to();
    let offset = mark + valid;
    if error.error_len().is_none() {
        return DecodeError::Truncated { encoding, offset };
    }
    let byte = bytes.get(valid).copied().unwrap_or_default();
    DecodeError::Malformed { encoding, offset, found: format!("byte {byte:02X}") }
}

/// Recognizes UTF-16 without a mark: ASCII text in it has a zero as every second byte, and only
/// there. Text of other scripts is not recognized and is reported as binary.
fn find_unmarked(bytes: &[u8], mark: usize) -> Option<DecodeError> {
    let sniffed = bytes.get(..bytes.len().min(SNIFFED_BYTES)).unwrap_or(bytes);
    let (pairs, _) = sniffed.as_chunks::<2>();
    let zeros = |index: usize| pairs.iter().filter(|pair| pair.get(index) == Some(&0)).count();
    let (first, second) = (zeros(0), zeros(1));
    let is_most = |count: usize| count > 0 && count * 10 >= pairs.len() * 9;
    if is_most(second) && first == 0 {
        return Some(DecodeError::Unmarked { looks_like: "utf-16le", offset: mark + 1 });
    }
    let is_big_endian = is_most(first) && second == 0;
    is_big_endian.then_some(DecodeError::Unmarked { looks_like: "utf-16be", offset: mark })
}

fn decode_utf16(
    bytes: &[u8],
    encoding: Encoding,
    unit: fn([u8; 2]) -> u16,
) -> Result<Decoded<'_>, DecodeError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut offset = 2;
    for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let character = decoded
            .map_err(|error| surrogate_error(error.unpaired_surrogate(), encoding, offset))?;
        if character == '\0' {
            return Err(DecodeError::Binary { offset });
        }
        text.push(character);
        offset += 2 * character.len_utf16();
    }
    if rest.is_empty() {
        Ok(Decoded { text: Cow::Owned(text), encoding })
    } else {
        Err(DecodeError::Truncated { encoding, offset })
    }
}

fn surrogate_error(surrogate: u16, encoding: Encoding, offset: usize) -> DecodeError {
    let found = format!("surrogate {surrogate:04X} without its pair");
    DecodeError::Malformed { encoding, offset, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16le(text: &str) -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        [0xff, 0xfe].into_iter().chain(units).collect()
    }

    #[test]
    fn three_encodings_of_one_text_read_the_same() {
        let text = "{\"t/s\": \"\u{b1}\u{1f600}\"}\r\n";
        let big: Vec<u8> = [0xfe, 0xff]
            .into_iter()
            .chain(text.encode_utf16().flat_map(u16::to_be_bytes))
            .collect();
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        for (bytes, name) in [
            (text.as_bytes().to_vec(), "utf-8"),
            (marked, "utf-8-bom"),
            (utf16le(text), "utf-16le-bom"),
            (big, "utf-16be-bom"),
        ] {
            let decoded = decode(&bytes).unwrap();
            assert_eq!((decoded.text.as_ref(), decoded.encoding.as_str()), (text, name));
        }
    }

    #[test]
    fn an_odd_length_is_a_cut_and_names_its_byte() {
        let mut bytes = utf16le("ab");
        bytes.push(b'c');
        let error = decode(&bytes).unwrap_err();
        assert_eq!(error, DecodeError::Truncated { encoding: Encoding::Utf16LeBom, offset: 6 });
        assert_eq!(error.to_string(), "the utf-16le-bom text is cut inside a character at byte 6");
    }

    #[test]
    fn a_lone_surrogate_is_an_error_and_never_a_replacement() {
        let bytes = [0xff, 0xfe, b'a', 0, 0x00, 0xd8, b'b', 0];
        let error = decode(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the file is not utf-16le-bom: surrogate D800 without its pair at byte 4"
        );
    }

    #[test]
    fn utf16_without_a_mark_is_named_with_a_hint() {
        let marked = utf16le("[{\"build_commit\": \"abc\"}]");
        let error = decode(&marked[2..]).unwrap_err();
        assert_eq!(error, DecodeError::Unmarked { looks_like: "utf-16le", offset: 1 });
        assert!(error.hint().unwrap().contains("iconv"));
        let swapped: Vec<u8> = marked[2..].chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
        let error = decode(&swapped).unwrap_err();
        assert_eq!(error, DecodeError::Unmarked { looks_like: "utf-16be", offset: 0 });
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_offset() {
        assert_eq!(decode(b"GGUF\0\0ab\x01\x02xyz"), Err(DecodeError::Binary { offset: 4 }));
        assert_eq!(decode(b"ab\xc3").unwrap_err().offset(), 2);
        assert!(decode(b"ab\xc3").unwrap_err().is_truncated());
        assert_eq!(
            decode(b"\xef\xbb\xbfab\xffcd").unwrap_err().to_string(),
            "the file is not utf-8-bom: byte FF at byte 5"
        );
        assert!(decode(&utf16le("a\0b")).is_err());
    }

    #[test]
    fn an_empty_file_is_an_empty_text() {
        assert_eq!(decode(b"").unwrap().text, "");
        assert_eq!(decode(b"\xff\xfe").unwrap().text, "");
    }
}
