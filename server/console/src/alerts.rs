//! Rules by which figures alert the owner. The history holds them against its figures and
//! keeps their states (`sql/alerts.sql`).

use std::time::Duration;

use millpond_site::AlertRule;
use serde_json::{Value, json};

use crate::History;
use crate::webhooks::Webhooks;

/// The rules of a server.
pub(crate) struct Alerts {
    rules: Vec<AlertRule>,
    /// The rules as the history takes them.
    shown: Value,
    cores: usize,
    webhooks: Webhooks,
    log: fn(&str),
}

impl Alerts {
    pub(crate) fn new(rules: Vec<AlertRule>, webhooks: Webhooks, log: fn(&str)) -> Self {
        let shown = rules.iter().map(|rule| {
            let lasts = u64::try_from(rule.lasts.as_millis()).unwrap_or(u64::MAX);
            json!([rule.name, rule.figure, rule.limit, rule.is_low_bad, lasts])
        });
        Self {
            shown: shown.collect(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            rules,
            webhooks,
            log,
        }
    }

    /// Looks at all rules at the time `at`, `passed` after the last look, and tells which alerts
    /// have begun and which are over.
    pub(crate) fn look(&self, history: &History, at: u64, passed: Duration) {
        let passed = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        for turned in history.hold_alerts(&self.shown, [at, passed, self.cores as u64]) {
            (self.log)(turned["text"].as_str().unwrap_or_default());
            let rule = self.rules.iter().find(|rule| turned["alert"] == *rule.name);
            if let Some(url) = rule.and_then(|rule| rule.webhook.as_ref()) {
                self.webhooks.post(url, turned.to_string());
            }
        }
    }
}
