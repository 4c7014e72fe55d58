//! What `millrace compare` says of two servers.

use std::process::Command;

use serde_json::{Value, json};

use crate::Result;

/// The server's CPU by one comparison. A comparison abandoned for an `INVALID` run has no figures,
/// and has found nothing.
pub(crate) struct CpuComparison {
    pub(crate) decision: String,
    /// Ratio of B to A, and its 95 % interval.
    pub(crate) ratio: Option<[f64; 3]>,
    /// Ratio of A to A, and its 95 % interval.
    pub(crate) baseline: Option<[f64; 3]>,
    pub(crate) detectable: Option<f64>,
    pub(crate) blocks: u64,
    pub(crate) verdict: String,
    pub(crate) within_limit: Option<bool>,
    reasons: Value,
}

/// Runs `millrace compare --metric cpu --json -` with the arguments already given to `command`.
pub(crate) fn compare(command: &mut Command) -> Result<CpuComparison> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .args(["--metric", "cpu", "--json", "-"])
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let finding = serde_json::from_slice(&output.stdout)
        .ok()
        .as_ref()
        .and_then(CpuComparison::read);
    finding.ok_or_else(|| {
        format!(
            "millrace compare: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

impl CpuComparison {
    /// From the JSON of `millrace compare`.
    fn read(json: &Value) -> Option<Self> {
        let effects = json.get("effects")?.as_array()?;
        let effect = effects.iter().find(|effect| effect["metric"] == "cpu")?;
        let ratio = |of: &Value| -> Option<[f64; 3]> {
            Some([
                of["ratio"].as_f64()?,
                of["low"].as_f64()?,
                of["high"].as_f64()?,
            ])
        };
        Some(Self {
            decision: json["decision"].as_str()?.to_owned(),
            verdict: json["verdict"].as_str()?.to_owned(),
            reasons: json["reasons"].clone(),
            ratio: ratio(&effect["ratio"]),
            baseline: ratio(&effect["baseline"]),
            detectable: effect["detectable"].as_f64(),
            blocks: effect["ratio"]["blocks"].as_u64().unwrap_or(0),
            within_limit: json["within_limit"].as_bool(),
        })
    }

    /// True if A differs from itself.
    pub(crate) fn flags_itself(&self) -> bool {
        self.baseline
            .is_some_and(|[_, low, high]| low > 1.0 || high < 1.0)
    }

    /// In one line.
    pub(crate) fn line(&self) -> String {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let (Some(ratio), Some(own), Some(detectable)) =
            (self.ratio, self.baseline, self.detectable)
        else {
            return format!("{:13} {}: {}", self.decision, self.verdict, self.reasons);
        };
        let [ratio, low, high] = ratio.map(percent);
        let [own, own_low, own_high] = own.map(percent);
        let doubts = match self.verdict.as_str() {
            "VALID" => String::new(),
            _ => format!(": {}", self.reasons),
        };
        format!(
            "{:13} {ratio:+6.2} % ({low:+.2} to {high:+.2})   A/A {own:+6.2} % ({own_low:+.2} to {own_high:+.2})   \
             could see {:.2} % in {} blocks   {}{doubts}",
            self.decision,
            detectable * 100.0,
            self.blocks,
            self.verdict
        )
    }

    /// As JSON.
    pub(crate) fn as_json(&self) -> Value {
        json!({
            "decision": self.decision,
            "verdict": self.verdict,
            "reasons": self.reasons,
            "ratio": self.ratio,
            "baseline": self.baseline,
            "detectable": self.detectable,
            "blocks": self.blocks,
            "within_limit": self.within_limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::CpuComparison;

    #[test]
    fn a_comparison_is_read_from_its_json() {
        let ratio = json!({"ratio": 1.03, "low": 1.02, "high": 1.04, "blocks": 60});
        let own = json!({"ratio": 1.001, "low": 0.99, "high": 1.01});
        let effect = json!({"metric": "cpu", "ratio": ratio, "baseline": own, "detectable": 0.01});
        let all = json!({
            "decision": "worse", "verdict": "VALID", "effects": [{"metric": "p50"}, effect],
            "within_limit": true
        });
        let finding = CpuComparison::read(&all).expect("a finding");
        assert_eq!(finding.ratio, Some([1.03, 1.02, 1.04]));
        assert_eq!(finding.within_limit, Some(true));
        assert!(!finding.flags_itself());
        assert_eq!(
            finding.line(),
            "worse          +3.00 % (+2.00 to +4.00)   A/A  +0.10 % (-1.00 to +1.00)   could see 1.00 % in 60 blocks   VALID"
        );
        assert!(CpuComparison::read(&json!({"decision": "worse"})).is_none());
        let effect = json!({"metric": "cpu", "ratio": null, "baseline": own, "detectable": null});
        let given_up = json!({
            "decision": "undecided", "verdict": "INVALID", "reasons": ["late"], "effects": [effect]
        });
        let finding = CpuComparison::read(&given_up).expect("a finding too");
        assert_eq!(finding.line(), "undecided     INVALID: [\"late\"]");
        assert!(!finding.flags_itself() && finding.within_limit.is_none());
    }
}
