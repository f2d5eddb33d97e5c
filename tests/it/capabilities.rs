//! What the ledger must be able to do, line by line, and the test that shows it. The numbers are those
//! of the list of capabilities that the project is built against; the words are ours.

use std::fs;
use std::path::{Path, PathBuf};

/// Number, what a user does and gets, test that shows it.
const CAPABILITIES: &[(&str, &str, &str)] = &[
    (
        "S0.5",
        "a crash without a metric is a full record",
        "a_failed_attempt_is_evidence_and_never_a_result",
    ),
    (
        "S0.6",
        "failures are found by request shape and cause",
        "a_failed_attempt_is_evidence_and_never_a_result",
    ),
    (
        "S0.8",
        "nominal and actual prompt tokens are two facts",
        "planned_prompt_tokens_are_not_the_ones_seen",
    ),
    (
        "S0.13",
        "a writing verb can be tried and prints the id it would create",
        "a_dry_run_prints_the_key_and_stores_nothing",
    ),
    (
        "S0.15",
        "requested and effective value are a pair, and where they differ is one query",
        "circumstances_are_kept_and_shown",
    ),
    (
        "S0.16",
        "requested and loaded name stand side by side",
        "a_folder_becomes_a_run_with_its_numbers",
    ),
    ("S0.17", "clients, hosts and reasoning level are kept", "circumstances_are_kept_and_shown"),
    (
        "S0.18",
        "the operating contract is part of the conditions",
        "circumstances_are_kept_and_shown",
    ),
    (
        "S0.19",
        "asked for what was not measured the answer is none",
        "a_correction_changes_labels_and_only_labels",
    ),
    ("S0.20", "direct, routed and deployed are different", "circumstances_are_kept_and_shown"),
    ("S0.21", "verify derives the needed artifacts from the manifest", "each_damage_is_named"),
    ("S0.22", "runs group into a campaign", "circumstances_are_kept_and_shown"),
    (
        "S1.1",
        "a port leads to the process, its weight files and their digests",
        "a_port_leads_to_the_process_and_its_mapped_weights",
    ),
    (
        "S1.3",
        "a proxy proves nothing and the worker is asked for",
        "what_proves_nothing_is_refused_by_name",
    ),
    ("S1.4", "served names are labels and raise nothing", "an_http_answer_is_a_label"),
    (
        "S1.2",
        "no proof, no number, its own exit status, each failed rule",
        "each_rule_of_weight_provenance_can_fail",
    ),
    ("S1.5", "a role is refused as identity", "a_role_is_no_model_and_a_branch_is_no_revision"),
    (
        "S1.6",
        "where the requested name is not what was loaded is one query",
        "circumstances_are_kept_and_shown",
    ),
    (
        "S1.7",
        "one weight set under several names is a finding",
        "a_weight_set_under_two_names_is_a_finding_and_a_binding_is_shown",
    ),
    ("S1.10", "no status is set by plausibility", "the_grade_follows_from_what_was_seen"),
    (
        "S1.13",
        "a definition that changed is part of the metric",
        "anvil_capacity_files_give_the_expected_values",
    ),
    (
        "S1.16",
        "a proof of another process does not cover the run",
        "a_restart_between_the_captures_voids_them",
    ),
    (
        "S1.20",
        "each field says where it came from; derived and written differ",
        "written_options_and_defaults_are_told_apart",
    ),
    ("S1.23", "byte-identical output can be asked for", "one_artifact_over_two_paths_is_one_blob"),
    ("S1.27", "shared or isolated, and what was ruled out", "circumstances_are_kept_and_shown"),
    (
        "S2.5",
        "a number of unknown origin says what is unknown about it",
        "a_prior_is_in_no_view_of_runs",
    ),
    (
        "S2.6",
        "every request failed: a failed record",
        "a_run_in_which_nothing_completed_is_a_failed_one",
    ),
    ("S2.13", "a branch is no revision", "a_role_is_no_model_and_a_branch_is_no_revision"),
    (
        "S2.14",
        "an empty artifact after exit 0 is refused",
        "a_result_that_no_adapter_knows_is_refused_with_the_list",
    ),
    ("S2.23", "whether reasoning counts as output is kept", "circumstances_are_kept_and_shown"),
    (
        "S2.24",
        "a server log is an artifact like any other",
        "artifacts_come_back_byte_for_byte_under_their_names",
    ),
    ("S2.25", "what a run cost", "circumstances_are_kept_and_shown"),
    (
        "S3.1",
        "silent failures are checks with a name of their own",
        "every_finding_code_is_documented_and_no_other",
    ),
    (
        "S3.9",
        "conditions are hashed into a fingerprint",
        "every_identity_follows_from_the_bytes_it_names",
    ),
    ("S3.12", "empty content makes a run untrustworthy", "empty_answers_are_no_measurement"),
    (
        "S3.13",
        "each guard is tested against the failure it was built for",
        "each_rule_of_weight_provenance_can_fail",
    ),
    (
        "S3.14",
        "a failed preflight cannot become a trusted record",
        "a_failed_preflight_beside_a_result_makes_it_untrustworthy",
    ),
    ("S3.15", "forced is untrustworthy for good", "a_forced_run_is_untrustworthy_for_good"),
    (
        "S3.16",
        "a warning of the preflight stays on the record",
        "a_failed_preflight_beside_a_result_makes_it_untrustworthy",
    ),
    (
        "S3.17",
        "the power cap is read back and compared with what was asked",
        "the_power_cap_is_the_observed_one",
    ),
    (
        "S3.19",
        "host incidents stand beside the results near them",
        "circumstances_are_kept_and_shown",
    ),
    (
        "S3.20",
        "hardware and placement are part of the fingerprint",
        "a_fingerprint_nests_and_reads_back",
    ),
    ("S3.24", "a value has its spread", "statistics_come_from_the_samples"),
    (
        "S3.25",
        "sixty equal prompts are a retry loop",
        "sixty_equal_prompts_among_others_are_a_retry_loop",
    ),
    (
        "S3.26",
        "an absent argument is a default, said as such",
        "written_options_and_defaults_are_told_apart",
    ),
    ("S3.27", "cost stands beside the yield", "circumstances_are_kept_and_shown"),
    (
        "S4.1",
        "the archive is chronological and never changes",
        "the_archive_can_be_asked_as_of_a_day",
    ),
    ("S4.8", "attempts are kept, not the last one", "circumstances_are_kept_and_shown"),
    (
        "S4.10",
        "tallies are counts, never only percent",
        "an_item_is_stable_when_every_attempt_passed",
    ),
    ("S4.14", "a startup failure supports no statement on speed", "metrics_are_no_failed_attempt"),
    (
        "S4.19",
        "nominal, requested and actual prompt tokens are kept apart",
        "planned_prompt_tokens_are_not_the_ones_seen",
    ),
    ("S4.22", "mean, p50, p95, p99 of each latency", "statistics_are_those_of_numpy"),
    (
        "S4.23",
        "the contract version of a derivation is kept",
        "anvil_capacity_files_give_the_expected_values",
    ),
    (
        "S4.25",
        "configured, reported and measured capacity are three fields",
        "circumstances_are_kept_and_shown",
    ),
    ("S4.28", "state before and restoration after", "circumstances_are_kept_and_shown"),
    ("S4.29", "a waiver has a scope and a person", "circumstances_are_kept_and_shown"),
    ("S4.30", "headroom is held against the reserve floor", "circumstances_are_kept_and_shown"),
    ("S4.33", "failures have a class", "a_failed_attempt_is_evidence_and_never_a_result"),
    ("S4.34", "draft, template and patch identities are kept", "circumstances_are_kept_and_shown"),
    ("S4.40", "incident time says nothing about latency", "incident_time_is_a_caution"),
    ("S4.41", "one artifact over two paths is one blob", "one_artifact_over_two_paths_is_one_blob"),
    (
        "S4.42",
        "a later product revision does not alter the measured one",
        "the_archive_can_be_asked_as_of_a_day",
    ),
    (
        "S4.43",
        "direct, isolated routed and live routed are kept apart",
        "circumstances_are_kept_and_shown",
    ),
    ("S4.55", "an import has limits", "a_map_with_too_many_rows_is_refused"),
    (
        "S4.58",
        "what failed to be read is kept and named",
        "what_cannot_be_parsed_is_kept_and_says_why",
    ),
    ("S4.59", "other people's data is a prior, never a result", "a_prior_is_in_no_view_of_runs"),
    ("S4.68", "a warning of a run stays visible", "circumstances_are_kept_and_shown"),
    ("S4.72", "the cache state is kept", "circumstances_are_kept_and_shown"),
    ("S4.73", "a cap is not a generated length", "planned_prompt_tokens_are_not_the_ones_seen"),
    ("S4.74", "a resource failure after a load is retained", "circumstances_are_kept_and_shown"),
    ("S4.75", "what did not run is listed as not run", "circumstances_are_kept_and_shown"),
    (
        "S4.76",
        "the day of capture is not the day of recording",
        "latest_is_by_measurement_time_and_not_by_arrival",
    ),
    (
        "S4.78",
        "candidate, config, checkpoint and served name are four",
        "a_folder_becomes_a_run_with_its_numbers",
    ),
    ("S4.81", "a check has six outcomes", "an_item_is_stable_when_every_attempt_passed"),
    (
        "S4.82",
        "environment and model are different causes",
        "a_failed_attempt_is_evidence_and_never_a_result",
    ),
    (
        "S4.84",
        "the archive is searchable and addresses are stable",
        "a_retracted_run_keeps_its_address_and_counts_no_more",
    ),
];

fn walk(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_capability_names_a_test_that_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    for folder in ["tests", "ledger", "importers", "src"] {
        walk(&root.join(folder), &mut text);
    }
    for (number, _, test) in CAPABILITIES {
        assert!(
            text.contains(&format!("fn {test}()")),
            "{number} names `{test}`, which does not exist"
        );
    }
}

#[test]
fn capabilities_are_listed_once() {
    for (index, (number, _, _)) in CAPABILITIES.iter().enumerate() {
        assert!(CAPABILITIES[..index].iter().all(|(other, _, _)| other != number), "{number}");
    }
}
