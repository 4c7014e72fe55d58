//! Chromium without a window, driven by its own protocol over two pipes
//! (<https://chromedevtools.github.io/devtools-protocol/>).

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

use crate::{PATIENCE, installed_program};

/// A browser, which ends when it is dropped.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    last: u64,
    said: Vec<String>,
}

/// A page that is shown.
pub struct Window(String);

/// Events of a page that it is to cause only on purpose.
const MESSAGES: [&str; 3] = [
    "Runtime.exceptionThrown",
    "Runtime.consoleAPICalled",
    "Log.entryAdded",
];

/// True if there is no browser here, which is said.
#[must_use]
pub fn has_no_browser() -> bool {
    let is_missing = Command::new("chromium").arg("--version").output().is_err();
    if is_missing {
        eprintln!("chromium is missing: not tested");
    }
    is_missing
}

impl Browser {
    /// Starts a browser whose profile is in the empty folder `home`.
    pub fn start(home: &Path) -> Self {
        let (to, from) = (home.join("to"), home.join("from"));
        for pipe in [&to, &from] {
            mkfifoat(CWD, pipe, Mode::RUSR | Mode::WUSR).unwrap();
        }
        let command = "exec chromium --headless=new --no-sandbox --disable-gpu \
             --remote-debugging-pipe --user-data-dir=\"$HOME/profile\" about:blank 3<\"$HOME/to\" 4>\"$HOME/from\"";
        let child = Command::new("sh")
            .args(["-c", command])
            .env("HOME", home)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        Self {
            child,
            to,
            from,
            last: 0,
            said: Vec::new(),
        }
    }

    /// Returns the messages of pages to the console, and their uncaught exceptions.
    #[must_use]
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// Calls a method in a session, or of the browser itself, and returns its result.
    pub fn call(&mut self, session: Option<&Window>, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.0.as_str().into();
        }
        write!(self.to, "{message}\0").unwrap();
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).unwrap();
            answer.pop();
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            if MESSAGES.iter().any(|event| answer["method"] == *event) {
                self.said.push(answer["params"].to_string());
            }
        }
    }

    /// Opens a page in a window of its own.
    pub fn window(&mut self, url: &str) -> Window {
        self.open(url, true)
    }

    /// Opens a page in a window of its own, or in a tab of the last one.
    pub fn open(&mut self, url: &str, is_window: bool) -> Window {
        let params = json!({"url": url, "newWindow": is_window});
        let target = self.call(None, "Target.createTarget", &params)["targetId"].clone();
        let params = json!({"targetId": target, "flatten": true});
        let session = self.call(None, "Target.attachToTarget", &params)["sessionId"].clone();
        let window = Window(session.as_str().unwrap().to_owned());
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            self.call(Some(&window), domain, &json!({}));
        }
        window
    }

    /// The value of an expression in a page; null while the page is on its way.
    pub fn value(&mut self, window: &Window, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        self.call(Some(window), "Runtime.evaluate", &params)["result"]["value"].clone()
    }

    /// Waits until an expression is true in a page.
    #[allow(
        clippy::disallowed_methods,
        reason = "the clock is read to give up waiting, and this crate knows no other"
    )]
    #[track_caller]
    pub fn until(&mut self, window: &Window, expression: &str) {
        let since = Instant::now();
        while self.value(window, expression) != Value::Bool(true) {
            let page =
                |browser: &mut Self| browser.value(window, "document.documentElement.outerHTML");
            assert!(
                since.elapsed() < PATIENCE,
                "{expression}: {} {:?}",
                page(self),
                self.said
            );
        }
    }

    /// Leads a window to a page, and waits until it is there.
    #[track_caller]
    pub fn go(&mut self, window: &Window, url: &str) {
        let loader = self.call(Some(window), "Page.navigate", &json!({"url": url}));
        assert!(loader["errorText"].is_null(), "{url}: {loader}");
        let is_there = format!("document.readyState === 'complete' && location.href === '{url}'");
        self.until(window, &is_there);
    }

    /// Presses a key and lets it go, as on a keyboard: `Tab`, `Enter`.
    pub fn press(&mut self, window: &Window, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            _ => panic!("{key} is not known"),
        };
        for kind in ["keyDown", "keyUp"] {
            let params = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
                "text": if kind == "keyDown" { text } else { "" },
            });
            self.call(Some(window), "Input.dispatchKeyEvent", &params);
        }
    }

    /// Shows a page as on a screen of this width, and in the scheme `light` or `dark`.
    pub fn show_as(&mut self, window: &Window, width: u32, scheme: &str) {
        let params = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call(Some(window), "Emulation.setDeviceMetricsOverride", &params);
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        let params = json!({ "features": features });
        self.call(Some(window), "Emulation.setEmulatedMedia", &params);
    }

    /// Writes a picture of a whole page, in base64 of a PNG file.
    pub fn picture(&mut self, window: &Window) -> String {
        let params = json!({"captureBeyondViewport": true});
        let picture = self.call(Some(window), "Page.captureScreenshot", &params);
        picture["data"].as_str().unwrap().to_owned()
    }

    /// Returns what axe-core finds in a page that is serious or critical, one thing a line; `None`
    /// if axe-core is not installed, which is said.
    pub fn faults_for_assistance(&mut self, window: &Window) -> Option<Vec<String>> {
        let Some(script) = installed_program(AXE) else {
            eprintln!("axe-core is missing (cargo xtask programs): not tested");
            return None;
        };
        let script = fs::read_to_string(script).unwrap();
        // It is not part of the page, so the policy of the page is not asked.
        let params = json!({ "expression": script, "allowUnsafeEvalBlockedByCSP": true });
        self.call(Some(window), "Runtime.evaluate", &params);
        let run = "axe.run(document, {resultTypes: ['violations']}).then((it) => it.violations\
             .filter((one) => ['serious', 'critical'].includes(one.impact))\
             .map((one) => one.id + ': ' + one.nodes.map((node) => node.target + ' ' + node.failureSummary).join(' | ')))";
        let found = self.value(window, run);
        let found = found
            .as_array()
            .unwrap_or_else(|| panic!("axe-core: {found}"));
        let lines = found.iter().map(|line| line.as_str().unwrap().to_owned());
        Some(lines.collect())
    }
}

/// axe-core in its folder below `target/programs`.
const AXE: &str = "node_modules/axe-core/axe.min.js";

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
