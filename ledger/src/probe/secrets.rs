//! Secrets in command lines: keys, tokens and passwords are masked before they reach a document, and
//! the document says where.

/// Words in an option's name that make its value a secret.
const SECRET: &[&str] = &["key", "token", "secret", "password", "passwd", "credential", "auth"];

/// Options that hold such a word and no secret.
const PLAIN: &[&str] = &["tokens", "tokenizer", "keyword", "key-format", "cache-type-k", "author"];

/// Masks the secrets of a command line. Returns it and the places that were masked: `argv[7]`.
pub(super) fn mask(argv: &[String]) -> (Vec<String>, Vec<String>) {
    let mut masked = Vec::new();
    let mut shown = Vec::with_capacity(argv.len());
    let mut is_value = false;
    for (index, word) in argv.iter().enumerate() {
        let safe = mask_word(word, is_value);
        if safe != *word {
            masked.push(format!("argv[{index}]"));
        }
        is_value = word.starts_with('-') && !word.contains('=') && is_secret(word);
        shown.push(safe);
    }
    (shown, masked)
}

fn mask_word(word: &str, is_value: bool) -> String {
    if is_value && !word.starts_with("--") {
        return "***".to_owned();
    }
    if let Some((option, _)) = word.split_once('=')
        && is_secret(option)
    {
        return format!("{option}=***");
    }
    mask_url(word)
}

fn is_secret(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| option.contains(word));
    holds(SECRET) && !holds(PLAIN)
}

/// `https://user:password@host` loses what stands before the `@`.
fn mask_url(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.rsplit_once('@') {
        Some((user, _)) => {
            word.replacen(&format!("{scheme}://{user}@"), &format!("{scheme}://***@"), 1)
        }
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_settings_are_not() {
        let argv: Vec<String> = [
            "s",
            "--api-key",
            "sk-1",
            "--hf-token=x",
            "--max-tokens",
            "5",
            "https://u:p@h/x",
            "--tokenizer",
            "t",
        ]
        .map(str::to_owned)
        .into();
        let (shown, masked) = mask(&argv);
        assert_eq!(
            shown,
            [
                "s",
                "--api-key",
                "***",
                "--hf-token=***",
                "--max-tokens",
                "5",
                "https://***@h/x",
                "--tokenizer",
                "t"
            ]
        );
        assert_eq!(masked, ["argv[2]", "argv[3]", "argv[6]"]);
    }
}
