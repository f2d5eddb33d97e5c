//! From bytes to text, by what the bytes say: a byte order mark names an encoding and is believed;
//! without one the text is UTF-8 or no text. Nothing is ever replaced: a file that is not what it
//! claims is an error with the byte where it stops being it. Hashes are of the original bytes, never
//! of what is returned here.

use std::borrow::Cow;

/// Which encoding a file was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 without a mark.
    Utf8,
    /// UTF-8 with a mark.
    Utf8Marked,
    /// UTF-16, little endian, with a mark (Windows PowerShell 5 writes it).
    Utf16Little,
    /// UTF-16, big endian, with a mark.
    Utf16Big,
}

impl Encoding {
    /// Returns the name that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf8Marked => "utf-8-bom",
            Self::Utf16Little => "utf-16le-bom",
            Self::Utf16Big => "utf-16be-bom",
        }
    }

    /// Returns the length of the mark in bytes.
    pub const fn mark_bytes(self) -> usize {
        match self {
            Self::Utf8 => 0,
            Self::Utf8Marked => 3,
            Self::Utf16Little | Self::Utf16Big => 2,
        }
    }
}

/// A text and the encoding it was read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text without its mark.
    pub text: Cow<'a, str>,
    /// The encoding.
    pub encoding: Encoding,
}

/// Why bytes are no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// UTF-16 with half a code unit, or half a surrogate pair, at its end.
    #[error("UTF-16 text is cut at byte {offset}, in the middle of a character")]
    Cut {
        /// Where the text stops being whole.
        offset: usize,
    },
    /// UTF-16 with a surrogate that has no partner.
    #[error("byte {offset} is no UTF-16: a surrogate without its partner")]
    Surrogate {
        /// Where.
        offset: usize,
    },
    /// Every second byte is zero and no mark is there.
    #[error(
        "every second byte is zero: it looks like UTF-16 without a byte order mark; convert it, or write it with a mark"
    )]
    Unmarked,
    /// Not UTF-8.
    #[error("byte {offset} is no UTF-8")]
    NotUtf8 {
        /// Where.
        offset: usize,
    },
    /// Zero bytes: no text at all.
    #[error("byte {offset} is zero: it is no text")]
    Binary {
        /// Where.
        offset: usize,
    },
}

/// Decodes a file.
///
/// # Errors
/// [`DecodeError`] with the byte offset in the file.
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, DecodeError> {
    if let Some(rest) = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]) {
        return utf8(rest, Encoding::Utf8Marked);
    }
    if let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) {
        return utf16(rest, Encoding::Utf16Little);
    }
    if let Some(rest) = bytes.strip_prefix(&[0xfe, 0xff]) {
        return utf16(rest, Encoding::Utf16Big);
    }
    if looks_like_utf16(bytes) {
        return Err(DecodeError::Unmarked);
    }
    utf8(bytes, Encoding::Utf8)
}

fn looks_like_utf16(bytes: &[u8]) -> bool {
    let head = bytes.get(..bytes.len().min(64)).unwrap_or_default();
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let half = head.len() / 2;
    half >= 4 && (zeros(0) == half || zeros(1) == half) && zeros(0) != zeros(1)
}

fn utf8(bytes: &[u8], encoding: Encoding) -> Result<Decoded<'_>, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|error| DecodeError::NotUtf8 {
        offset: encoding.mark_bytes() + error.valid_up_to(),
    })?;
    // `contains` is vectorized, `position` is not, and texts without a zero byte are the rule.
    if bytes.contains(&0) {
        let at = bytes.iter().position(|byte| *byte == 0).unwrap_or_default();
        return Err(DecodeError::Binary { offset: encoding.mark_bytes() + at });
    }
    Ok(Decoded { text: Cow::Borrowed(text), encoding })
}

fn utf16(bytes: &[u8], encoding: Encoding) -> Result<Decoded<'static>, DecodeError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| match encoding {
        Encoding::Utf16Big => u16::from_be_bytes(*pair),
        Encoding::Utf16Little | Encoding::Utf8 | Encoding::Utf8Marked => u16::from_le_bytes(*pair),
    });
    let mut text = String::with_capacity(pairs.len());
    let mut offset = encoding.mark_bytes();
    for decoded in char::decode_utf16(units) {
        let Ok(character) = decoded else {
            let is_last = offset + 2 >= encoding.mark_bytes() + pairs.len() * 2;
            return Err(if is_last {
                DecodeError::Cut { offset }
            } else {
                DecodeError::Surrogate { offset }
            });
        };
        text.push(character);
        offset += character.len_utf16() * 2;
    }
    if !rest.is_empty() {
        return Err(DecodeError::Cut { offset });
    }
    Ok(Decoded { text: Cow::Owned(text), encoding })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn little(text: &str) -> Vec<u8> {
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn one_text_in_four_encodings_is_one_text() {
        let text = "{\"a\": \"\u{e9}\u{1f600}\"}\r\n";
        let big: Vec<u8> =
            [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        for (bytes, encoding) in [
            (text.as_bytes().to_vec(), "utf-8"),
            (marked, "utf-8-bom"),
            (little(text), "utf-16le-bom"),
            (big, "utf-16be-bom"),
        ] {
            let decoded = decode(&bytes).unwrap();
            assert_eq!((decoded.text.as_ref(), decoded.encoding.as_str()), (text, encoding));
        }
    }

    #[test]
    fn a_cut_text_is_never_patched() {
        let mut bytes = little("abc");
        bytes.push(b'x');
        assert_eq!(decode(&bytes), Err(DecodeError::Cut { offset: 8 }));
        let cut = &little("a\u{1f600}")[..6];
        assert_eq!(decode(cut), Err(DecodeError::Cut { offset: 4 }));
        assert_eq!(decode(b"ab\xffc"), Err(DecodeError::NotUtf8 { offset: 2 }));
        assert_eq!(decode(b"ab\0c"), Err(DecodeError::Binary { offset: 2 }));
    }

    #[test]
    fn utf16_without_a_mark_is_told_not_guessed() {
        assert_eq!(decode(&little("[{\"a\": 1}]")[2..]), Err(DecodeError::Unmarked));
    }
}
