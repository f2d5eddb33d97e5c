use super::*;
use crate::cell::{Item, Request, RequestStatus};
use crate::metric::Unit;

fn cell(completed: u64, asked: u64) -> Cell {
    let mut cell = Cell::default();
    cell.requests.asked = Some(asked);
    cell.requests.completed = Some(completed);
    cell.push(Metric::new("ttft_ms").with_samples(Unit::Canonical, [10.0, 11.0]));
    cell.push(Metric::new("output_tok_s").with_given(
        Statistic::Value,
        Unit::Canonical,
        Some(133.8),
        "output_throughput",
    ));
    cell
}

fn row(prompt: u64, output: u64) -> Request {
    Request {
        status: RequestStatus::Ok,
        prompt_tokens: Some(prompt),
        output_tokens: Some(output),
        truncated: None,
    }
}

fn judged(mut cell: Cell) -> (Cell, Vec<(Code, Severity, String)>) {
    let findings = judge(std::slice::from_mut(&mut cell), None);
    let told = findings.into_iter().map(|f| (f.code, f.severity, f.message)).collect();
    (cell, told)
}

fn codes(cell: Cell) -> Vec<Code> {
    judged(cell).1.into_iter().map(|(code, _, _)| code).collect()
}

#[test]
fn three_of_five_hundred_is_said_beside_the_rate() {
    let (_, findings) = judged(cell(3, 500));
    assert_eq!(findings[0].0, Code::CompletionBelowLimit);
    assert_eq!(findings[0].2, "3 of 500 requests completed (0.6 %)");
    assert_eq!(codes(cell(96, 100)), [Code::RequestsFailed]);
    assert_eq!(codes(cell(100, 100)), []);
}

#[test]
fn a_run_in_which_nothing_completed_has_no_metric_left() {
    let (cell, findings) = judged(cell(0, 8));
    assert!(cell.metrics.is_empty());
    assert_eq!(cell.missing.len(), 2);
    assert_eq!(findings[0].1, Severity::Untrustworthy);
    assert_eq!(
        derive_validity(
            &[cell],
            &[Finding::new(Code::NoRequestCompleted, Severity::Untrustworthy, "all", "")]
        ),
        Validity::Untrustworthy
    );
}

#[test]
fn zero_output_tokens_are_no_speed() {
    let mut zero = cell(17, 1000);
    zero.tokens.output_total = Some(0);
    let (cell, findings) = judged(zero);
    assert!(cell.metrics.is_empty());
    assert!(findings.iter().any(|(code, _, _)| *code == Code::NoOutputTokens));
}

#[test]
fn a_ttft_of_zero_is_missing_and_not_the_best() {
    let mut unstreamed = cell(2, 2);
    unstreamed.metrics[0].samples = vec![0.0, 0.0];
    let (cell, findings) = judged(unstreamed);
    assert!(cell.find_metric("ttft_ms").is_none());
    assert_eq!(cell.missing[0].metric, "ttft_ms");
    assert_eq!(findings[0].0, Code::NotStreamed);
}

#[test]
fn a_ttft_that_is_the_whole_answer_is_no_ttft() {
    let mut unstreamed = cell(2, 2);
    unstreamed.push(Metric::new("e2e_ms").with_samples(Unit::Canonical, [10.0, 11.0]));
    assert_eq!(codes(unstreamed.clone()), [Code::NotStreamed]);
    unstreamed.tokens.output_mean = Some(1.0);
    assert_eq!(codes(unstreamed), [], "one token has no second one to wait for");
}

#[test]
fn a_runaway_is_named_and_takes_the_throughput_with_it() {
    let mut wild = cell(5, 5);
    wild.request_rows = [500, 510, 520, 530, 1_015_784].map(|output| row(100, output)).into();
    let (cell, findings) = judged(wild);
    assert_eq!(findings[0].0, Code::RunawayRequest);
    assert!(findings[0].2.contains("request 4 wrote 1015784 tokens"));
    assert!(cell.find_metric("output_tok_s").is_none());
    assert!(cell.find_metric("ttft_ms").is_some());
    assert_eq!(cell.requests.completed, Some(4));
}

#[test]
fn a_request_at_the_context_ceiling_ran_away() {
    let mut wild = cell(1, 1);
    wild.request_rows = vec![row(1000, 3090)];
    let findings = judge(std::slice::from_mut(&mut wild), Some(4096));
    assert_eq!(findings[0].message, "request 0 ran to 4090 tokens against a context of 4096");
}

#[test]
fn cut_answers_stand_beside_the_score() {
    let items = (0..4u32)
        .map(|n| Item {
            id: n.to_string(),
            attempt: 1,
            status: CheckStatus::Pass,
            truncated: Some(n == 0),
            failure_class: None,
        })
        .collect();
    let (_, findings) = judged(Cell { items, ..Cell::default() });
    assert_eq!(findings[0].2, "1 of 4 answers were cut at the token limit");
}

#[test]
fn a_negative_or_infinite_value_takes_its_metric_out() {
    for (value, code) in [(-1.0, Code::NegativeValue), (f64::NAN, Code::NonFiniteValue)] {
        let mut odd = cell(2, 2);
        odd.metrics[0].samples.push(value);
        let (cell, findings) = judged(odd);
        assert!(cell.find_metric("ttft_ms").is_none());
        assert_eq!((findings[0].0, findings[0].1), (code, Severity::Untrustworthy));
    }
}

#[test]
fn one_sample_is_a_point() {
    let mut one = cell(1, 1);
    one.metrics[0].samples = vec![9.0];
    assert_eq!(codes(one), [Code::OneSample]);
}

#[test]
fn planned_prompt_tokens_are_not_the_ones_seen() {
    let mut planned = cell(2, 2);
    planned.tokens.prompt_nominal = Some(4096);
    planned.tokens.prompt_mean = Some(2960.0);
    assert_eq!(codes(planned.clone()), [Code::PlannedNotActual]);
    planned.tokens.prompt_mean = Some(4090.0);
    assert_eq!(codes(planned), []);
}

#[test]
fn sixty_equal_prompts_among_others_are_a_retry_loop() {
    let mut looping = cell(70, 70);
    looping.request_rows = (0..70).map(|n| row(if n < 61 { 900 } else { n }, 10)).collect();
    assert_eq!(codes(looping.clone()), [Code::RetryLoop]);
    looping.request_rows = (0..70).map(|_| row(900, 10)).collect();
    assert_eq!(codes(looping), [], "a workload of one length is no loop");
}

#[test]
fn a_forced_run_is_untrustworthy_for_good() {
    let circumstances = Circumstances { forced: true, ..Circumstances::default() };
    let findings = judge_circumstances(&circumstances);
    assert_eq!(derive_validity(&[cell(2, 2)], &findings), Validity::Untrustworthy);
}

#[test]
fn a_setting_that_nothing_shows_is_unverified_and_a_clamped_one_is_said() {
    let setting = |effective: Option<u32>, measured: Option<u32>| crate::entry::Setting {
        name: "max_tokens".into(),
        requested: 50_000.into(),
        effective: effective.map(Into::into),
        measured: measured.map(Into::into),
        at: None,
    };
    let judged = |setting| judge_setting(&setting).map(|finding| finding.code);
    assert_eq!(judged(setting(None, None)), Some(Code::EffectUnverified));
    assert_eq!(judged(setting(Some(32_768), None)), Some(Code::RequestedNotEffective));
    assert_eq!(judged(setting(Some(50_000), None)), None);
    assert_eq!(judged(setting(None, Some(50_000))), None);
}

#[test]
fn empty_answers_are_no_measurement() {
    let mut silent = cell(2, 2);
    silent.requests.empty = Some(2);
    let (judged_cell, findings) = judged(silent.clone());
    assert_eq!(findings[0].0, Code::EmptyAnswers);
    let found = [Finding::new(Code::EmptyAnswers, Severity::Untrustworthy, "all", "")];
    assert_eq!(derive_validity(&[judged_cell], &found), Validity::Untrustworthy);
    silent.requests.empty = Some(1);
    assert_eq!(codes(silent), []);
}

#[test]
fn incident_time_is_a_caution() {
    let circumstances = Circumstances { incident_time: true, ..Circumstances::default() };
    assert_eq!(judge_circumstances(&circumstances)[0].code, Code::IncidentTime);
}
