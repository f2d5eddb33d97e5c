//! The identities of design section 3: BLAKE3-256 digests as distinct newtypes, so that a blob id
//! can never be passed where a run key is meant. Each one is recomputed by `b3sum` over bytes that
//! the type's documentation shows. Owns hex in and out and domain-separated hashing; knows nothing
//! of where ids are stored.

use std::fmt;
use std::str::FromStr;

/// Number of bytes of every identity (BLAKE3-256).
pub const DIGEST_BYTES: usize = 32;

/// The fewest hex digits a person may type to name something.
pub const SHORTEST_PREFIX: usize = 8;

/// Why a text is not an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text has another length than 64.
    #[error("an id has 64 hex digits, this has {found}")]
    Length {
        /// The number of characters found.
        found: usize,
    },
    /// A character is not a lower-case hex digit.
    #[error("`{found}` is not a lower-case hex digit")]
    Digit {
        /// The offending character.
        found: char,
    },
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes bytes as lower-case hex.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(HEX.get(usize::from(nibble)).copied().unwrap_or(b'?')));
        }
    }
    text
}

/// Reads 64 lower-case hex digits.
///
/// # Errors
/// [`IdError`] names the first thing that is wrong with the text.
pub fn from_hex(text: &str) -> Result<[u8; DIGEST_BYTES], IdError> {
    if let Some(found) = text.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
        return Err(IdError::Digit { found });
    }
    let mut digest = [0u8; DIGEST_BYTES];
    if text.len() != DIGEST_BYTES * 2 {
        return Err(IdError::Length { found: text.len() });
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = pair.iter().fold(0, |value, digit| value << 4 | nibble(*digit));
    }
    Ok(digest)
}

const fn nibble(digit: u8) -> u8 {
    if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
}

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; DIGEST_BYTES]);

        impl $name {
            /// Takes a digest that was computed or stored as this identity.
            pub const fn from_bytes(bytes: [u8; DIGEST_BYTES]) -> Self {
                Self(bytes)
            }

            /// Returns the 32 bytes, as they are stored.
            pub const fn as_bytes(&self) -> &[u8; DIGEST_BYTES] {
                &self.0
            }

            /// Returns the first eight hex digits, for tables; use the full form in anything kept.
            pub fn short(&self) -> String {
                to_hex(&self.0).chars().take(SHORTEST_PREFIX).collect()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&to_hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.short())
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                from_hex(text).map(Self)
            }
        }
    };
}

identity!(
    /// Names the bytes of one file: `b3sum FILE`.
    BlobId
);
identity!(
    /// Names an artifact tree: `b3sum` of its manifest (see [`crate::tree`]).
    ArtifactRoot
);
identity!(
    /// Names a fairness fingerprint: `b3sum` of its RFC 8785 canonical JSON.
    FingerprintId
);
identity!(
    /// Names a run: `printf 'ledger-run v1\n%s\n%s\n' ROOT FINGERPRINT | b3sum`.
    RunKey
);
identity!(
    /// Names a prior: `printf 'ledger-prior v1\n%s\n%s\n' ROOT SOURCE-NAME | b3sum`.
    PriorKey
);
identity!(
    /// Names an entry of the log: `b3sum` of the entry body's canonical JSON.
    EntryId
);

impl BlobId {
    /// Hashes the bytes of a file.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl RunKey {
    /// Derives the key of a run from what was measured and under which conditions.
    pub fn derive(root: &ArtifactRoot, fingerprint: &FingerprintId) -> Self {
        let text = format!("ledger-run v1\n{root}\n{fingerprint}\n");
        Self(*blake3::hash(text.as_bytes()).as_bytes())
    }
}

impl PriorKey {
    /// Derives the key of a prior from the imported files and the name of their source.
    pub fn derive(root: &ArtifactRoot, source_name: &str) -> Self {
        let text = format!("ledger-prior v1\n{root}\n{source_name}\n");
        Self(*blake3::hash(text.as_bytes()).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_id_is_what_b3sum_prints() {
        // printf '' | b3sum ; printf 'abc' | b3sum (b3sum 1.8.2)
        let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        let abc = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(BlobId::of(b"").to_string(), empty);
        assert_eq!(BlobId::of(b"abc").to_string(), abc);
    }

    #[test]
    fn hex_goes_out_and_comes_back() {
        let id = BlobId::of(b"abc");
        assert_eq!(id.to_string().parse::<BlobId>(), Ok(id));
    }

    #[test]
    fn a_text_that_is_no_id_says_why() {
        assert_eq!("abc".parse::<RunKey>(), Err(IdError::Length { found: 3 }));
        assert_eq!("xyz".parse::<RunKey>(), Err(IdError::Digit { found: 'x' }));
        assert_eq!("AB".parse::<RunKey>(), Err(IdError::Digit { found: 'A' }));
    }
}
