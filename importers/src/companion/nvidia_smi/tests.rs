use super::*;

const HEADER: &str = "timestamp, index, uuid, power.limit [W], clocks.sm [MHz], \
                      clocks_throttle_reasons.active\n";

fn observe(rows: &str) -> Observation {
    let text = format!("{HEADER}{rows}");
    let file = SourceFile { name: "gpu.csv", text: &text };
    assert!(NvidiaSmiCsv.detect(&file).is_some());
    NvidiaSmiCsv.observe(&[file]).unwrap()
}

fn fact<'a>(seen: &'a Observation, field: &str) -> &'a Fact {
    seen.facts.iter().find(|fact| fact.field == field).unwrap()
}

#[test]
fn the_cap_is_what_the_card_reports_and_clocks_that_fall_are_named() {
    let seen = observe(
        "t, 0, GPU-a, 140.00 W, 1410 MHz, 0x20\nt, 0, GPU-a, 140.00 W, 1000 MHz, 0x04\n\
         t, 0, GPU-a, 140.00 W, 1025 MHz, 0x01\n",
    );
    let cap = fact(&seen, "power.cap_w");
    assert_eq!((&cap.value, cap.kind), (&json!([140]), FactKind::Observed));
    assert_eq!(cap.place, "gpu.csv, line 2, power.limit");
    assert_eq!(
        seen.observed["clocks_sm_mhz"],
        json!([{"card": "0", "first": 1410, "last": 1025, "min": 1000,
                "throttled_by": ["sw_power_cap", "sw_thermal_slowdown"]}])
    );
    assert_eq!(seen.cautions[0].code, Code::ClockDrift);
    assert_eq!(seen.cautions[0].message, "the clock of card 0 fell from 1410 to 1025 MHz");
    assert_eq!(fact(&seen, "placement").value, json!(["GPU-a"]));
}

#[test]
fn two_cards_keep_two_caps() {
    let seen = observe("t, 1, GPU-b, 140.00 W, 1390 MHz, 0\nt, 0, GPU-a, 100.00 W, 1300 MHz, 0\n");
    assert_eq!(fact(&seen, "power.cap_w").value, json!([100, 140]));
    assert_eq!(fact(&seen, "placement").value, json!(["GPU-a", "GPU-b"]));
    assert!(seen.cautions.is_empty());
}

#[test]
fn a_cap_that_the_card_does_not_have_is_unknown() {
    let seen = observe("t, 0, GPU-a, [N/A], 1605 MHz, 0\nt, 1, GPU-b, 100.00 W, 1605 MHz, 0\n");
    assert_eq!(fact(&seen, "power.cap_w").value, json!("unknown"));
    assert_eq!(seen.observed["power_cap_w"], json!([null, 100]));
}

#[test]
fn a_cap_that_changes_is_unknown_and_named() {
    let seen = observe("t, 0, GPU-a, 140.00 W, 1 MHz, 0\nt, 0, GPU-a, 99.5 W, 1 MHz, 0\n");
    assert_eq!(fact(&seen, "power.cap_w").value, json!("unknown"));
    let values: Vec<_> = seen.cautions[0].values.iter().map(|value| value.value.as_str()).collect();
    assert_eq!(values, ["140 W", "99.5 W"]);
}

#[test]
fn another_csv_is_no_telemetry() {
    let file = SourceFile { name: "x.csv", text: "model,power.limits,index\na,1,0\n" };
    assert_eq!(NvidiaSmiCsv.detect(&file), None);
}
