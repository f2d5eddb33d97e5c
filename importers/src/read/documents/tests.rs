use super::*;
use ledger::finding::Code;
use serde_json::Value;

fn texts<'a>(found: &Documents<'a>) -> Vec<&'a str> {
    found.records().map(|record| record.text).collect()
}

fn kinds(found: &Documents<'_>) -> Vec<Option<FlawKind>> {
    found.documents.iter().map(|document| document.flaw.map(|flaw| flaw.kind)).collect()
}

#[test]
fn lines_arrays_and_arrays_behind_arrays_are_documents() {
    let found = documents("{\"a\": 1}\n{\"a\": 2}\n[{\"a\": 3},\n {\"a\": 4}\n][{\"a\": 5}]");
    assert_eq!(
        texts(&found),
        ["{\"a\": 1}", "{\"a\": 2}", "{\"a\": 3}", "{\"a\": 4}", "{\"a\": 5}"]
    );
    assert_eq!(found.documents.len(), 4);
    let lines: Vec<_> = found.records().map(|record| (record.line, record.column)).collect();
    assert_eq!(lines, [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)]);
    assert!(found.skipped.is_empty());
    assert!(found.cautions().is_empty());
}

#[test]
fn brackets_and_quotes_inside_strings_are_text() {
    let text = r#"{"a": "}{ [\" \\", "b": {"c": []}}"#;
    assert_eq!(texts(&documents(text)), [text]);
}

#[test]
fn log_lines_are_skipped_counted_and_located() {
    let text = "[INFO] start \"x\n{'a': 1}\n{\"a\": 1}\nload: {\"b\": 2}\n{\"a\": 2}\nAborted (core dumped)\n";
    let found = documents(text);
    assert_eq!(texts(&found), ["{\"a\": 1}", "{\"a\": 2}"]);
    let lines: Vec<_> = found.skipped.iter().map(|skipped| skipped.line).collect();
    assert_eq!(lines, [1, 2, 4, 6]);
    let codes: Vec<_> = found.cautions().into_iter().map(|caution| caution.code).collect();
    assert_eq!(
        codes,
        [Code::LeadingText, Code::LeadingText, Code::TrailingText, Code::ProcessEndedAbnormally]
    );
    assert_eq!(found.cautions()[0].message, "2 lines of other text stand before the first record");
    assert_eq!(found.cautions()[0].values[0].value, "[INFO] start \"x");
}

#[test]
fn log_lines_inside_an_array_are_skipped_between_its_elements() {
    let found =
        documents("[\n  {\"a\": 1}ggml_init: [x] {y}\n,\n  llama: \"loading\n  {\"a\": 2}\n]\n");
    assert_eq!(texts(&found), ["{\"a\": 1}", "{\"a\": 2}"]);
    assert_eq!(kinds(&found), [None]);
    assert_eq!(found.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [2, 4]);
}

#[test]
fn an_array_that_is_never_closed_keeps_its_complete_elements() {
    let found = documents("[\n  {\"a\": 1},\n  {\"a\": 2},\n  {\"a\": ");
    assert_eq!(texts(&found), ["{\"a\": 1}", "{\"a\": 2}"]);
    assert_eq!(kinds(&found), [Some(FlawKind::Cut)]);
    assert_eq!(
        found.cautions()[0].message,
        "the record on line 1 is cut after 34 bytes, on line 4; 2 whole records before it are kept"
    );
    assert!(found.require_readable().is_ok());
}

#[test]
fn a_cut_record_in_the_middle_ends_where_the_next_begins() {
    for cut in
        ["{\"a\": 1, \"b\": 7", "{\"a\": 1, \"b\": \"half", "{\"a\": 1,", "{\"a\": {\"b\": 1}"]
    {
        let text = format!("{cut}\n{{\"a\": 2}}\n");
        let found = documents(&text);
        assert_eq!(texts(&found), ["{\"a\": 2}"], "{cut}");
        assert_eq!(kinds(&found), [Some(FlawKind::Cut), None], "{cut}");
    }
}

#[test]
fn a_text_without_a_complete_record_says_where_it_is_cut() {
    for text in ["{\"a\": \"half", "{\"a\": \"half\\\"", "[", "{\"a\": [1, 2"] {
        let error = documents(text).require_readable().unwrap_err();
        assert!(matches!(error, ExtractError::Cut { complete: 0, .. }), "{text}: {error}");
    }
}

#[test]
fn broken_text_is_located() {
    let error = documents("{\"a\": 1,\n \"b\": 2]\n").require_readable().unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 8: this is no JSON");
    for text in ["{\"a\" 1}", "{\"a\": 1,}", "{\"a\": 1 \"b\"}", "{\"a\": wat}"] {
        assert_eq!(kinds(&documents(text)).first(), Some(&Some(FlawKind::Broken)), "{text}");
    }
}

#[test]
fn nesting_has_a_limit() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let error = documents(&deep).require_readable().unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 128: values are nested deeper than 127");
    let fine = format!("{}{}", "[".repeat(127), "]".repeat(127));
    assert!(documents(&fine).require_readable().is_ok());
}

#[test]
fn a_record_reads_with_its_place_in_the_file() {
    let found = documents("log\n[{\"a\": NaN, \"b\": [Infinity]},\n {\"a\": \n  1e999}]");
    let records: Vec<_> = found.records().collect();
    let first = records[0].parse::<Value>().unwrap();
    assert_eq!(first, serde_json::json!({"a": null, "b": ["Infinity"]}));
    assert_eq!((records[0].non_finite, records[1].non_finite), (2, 0));
    let error = records[1].parse::<Value>().unwrap_err();
    assert_eq!(error.to_string(), "line 4, column 7: number out of range");
}

#[test]
fn marked_files_that_were_joined_still_split() {
    let found = documents("{\"a\": 1}\n\u{feff}{\"a\": 2}");
    assert_eq!(texts(&found), ["{\"a\": 1}", "{\"a\": 2}"]);
    assert!(found.skipped.is_empty());
}

#[test]
fn many_cut_records_are_one_finding() {
    let text = "{\"a\": 1\n{\"a\": 2}\n{\"a\": 3\n{\"a\": 4";
    let cautions = documents(text).cautions();
    assert_eq!(cautions.len(), 1);
    assert_eq!(
        cautions[0].message,
        "3 records are cut, the first of them: the record on line 1 is cut after 8 bytes, on \
         line 2; 0 whole records before it are kept"
    );
    let lines: Vec<_> = cautions[0].values.iter().map(|value| value.source.as_str()).collect();
    assert_eq!(lines, ["line 3", "line 4"]);
}
