//! The start of a GGUF file (version 2 and 3, <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>):
//! architecture, name and file type. Everything is bounded: a hostile header costs an error, not memory.
//! What it says is a label.

use crate::provenance::document::Header;
use std::io::{self, Read};

/// Longest text that is kept, in bytes; longer ones are skipped.
const TEXT_LIMIT: u64 = 4096;
/// Most key-value pairs that are read.
const PAIR_LIMIT: u64 = 4096;
/// Most bytes that are read of a header.
const HEADER_LIMIT: u64 = 64 << 20;

/// `general.file_type` (`llama.h`, `llama_ftype`).
const FILE_TYPES: &[(u64, &str)] = &[
    (0, "f32"),
    (1, "f16"),
    (2, "q4_0"),
    (3, "q4_1"),
    (7, "q8_0"),
    (8, "q5_0"),
    (9, "q5_1"),
    (10, "q2_k"),
    (11, "q3_k_s"),
    (12, "q3_k_m"),
    (13, "q3_k_l"),
    (14, "q4_k_s"),
    (15, "q4_k_m"),
    (16, "q5_k_s"),
    (17, "q5_k_m"),
    (18, "q6_k"),
    (30, "iq4_xs"),
    (32, "bf16"),
    (38, "mxfp4"),
    (39, "nvfp4"),
];

/// Reads the header; `None` for a file that is no GGUF.
pub(super) fn read(file: &mut impl Read) -> io::Result<Option<Header>> {
    let mut file = file.take(HEADER_LIMIT);
    let mut magic = [0u8; 4];
    if file.read_exact(&mut magic).is_err() || magic != *b"GGUF" {
        return Ok(None);
    }
    let version = u32_of(&mut file)?;
    if !(2..=3).contains(&version) {
        return Ok(None);
    }
    let _tensors = u64_of(&mut file)?;
    let pairs = u64_of(&mut file)?.min(PAIR_LIMIT);
    let mut header = Header { format: Some("gguf".to_owned()), ..Header::default() };
    for _ in 0..pairs {
        let key = text(&mut file)?.unwrap_or_default();
        let kind = u32_of(&mut file)?;
        match key.as_str() {
            "general.architecture" if kind == 8 => header.architecture = text(&mut file)?,
            "general.name" if kind == 8 => header.name = text(&mut file)?,
            "general.file_type" if kind == 4 => {
                let number = u64::from(u32_of(&mut file)?);
                let known = FILE_TYPES.iter().find(|(code, _)| *code == number);
                header.quant =
                    Some(known.map_or_else(
                        || format!("file type {number}"),
                        |(_, name)| (*name).to_owned(),
                    ));
            }
            _ => skip(&mut file, kind, 0)?,
        }
    }
    Ok(Some(header))
}

fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut buffer = [0u8; N];
    file.read_exact(&mut buffer)?;
    Ok(buffer)
}

fn u32_of(file: &mut impl Read) -> io::Result<u32> {
    bytes(file).map(u32::from_le_bytes)
}

fn u64_of(file: &mut impl Read) -> io::Result<u64> {
    bytes(file).map(u64::from_le_bytes)
}

fn text(file: &mut impl Read) -> io::Result<Option<String>> {
    let length = u64_of(file)?;
    if length > TEXT_LIMIT {
        discard(file, length)?;
        return Ok(None);
    }
    let mut buffer = Vec::new();
    file.take(length).read_to_end(&mut buffer)?;
    Ok(String::from_utf8(buffer).ok())
}

fn discard(file: &mut impl Read, length: u64) -> io::Result<()> {
    let skipped = io::copy(&mut file.take(length), &mut io::sink())?;
    if skipped == length {
        Ok(())
    } else {
        Err(io::Error::other("header is cut or larger than it may be"))
    }
}

/// Skips a value; arrays may nest, but not deep.
fn skip(file: &mut impl Read, kind: u32, depth: u8) -> io::Result<()> {
    let size = |kind: u32| match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    };
    match (kind, size(kind)) {
        (_, Some(size)) => discard(file, size),
        (8, None) => text(file).map(|_| ()),
        (9, None) if depth < 4 => {
            let inner = u32_of(file)?;
            let count = u64_of(file)?;
            if let Some(size) = size(inner) {
                return discard(file, count.saturating_mul(size));
            }
            (0..count).try_for_each(|_| skip(file, inner, depth + 1))
        }
        _ => Err(io::Error::other(format!("value type {kind} is not known"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
        [&(key.len() as u64).to_le_bytes()[..], key.as_bytes(), &kind.to_le_bytes(), value].concat()
    }

    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn file(pairs: &[Vec<u8>], count: u64) -> Vec<u8> {
        let head =
            [&b"GGUF"[..], &3u32.to_le_bytes(), &1u64.to_le_bytes(), &count.to_le_bytes()].concat();
        [head, pairs.concat()].concat()
    }

    #[test]
    fn a_header_says_architecture_name_and_file_type() {
        let pairs = [
            pair("general.architecture", 8, &string("gemma3")),
            pair(
                "general.tags",
                9,
                &[&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &string("a"), &string("b")]
                    .concat(),
            ),
            pair("general.name", 8, &string("Gemma 3")),
            pair("general.file_type", 4, &15u32.to_le_bytes()),
        ];
        let header = read(&mut file(&pairs, 4).as_slice()).unwrap().unwrap();
        assert_eq!(header.architecture.as_deref(), Some("gemma3"));
        assert_eq!(header.name.as_deref(), Some("Gemma 3"));
        assert_eq!(header.quant.as_deref(), Some("q4_k_m"));
    }

    #[test]
    fn a_hostile_header_costs_an_error_and_no_memory() {
        let huge = pair("general.name", 8, &u64::MAX.to_le_bytes());
        assert!(read(&mut file(&[huge], 1).as_slice()).is_err());
        let many = pair("x", 9, &[&8u32.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat());
        assert!(read(&mut file(&[many], u64::MAX).as_slice()).is_err());
        assert!(read(&mut file(&[], 5).as_slice()).is_err());
        assert!(read(&mut &b"PK\x03\x04"[..]).unwrap().is_none());
    }
}
