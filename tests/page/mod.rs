//! The page in a real Chromium, on a real server: one file for each promise. What is done in the browser stands beside the
//! page, in `web/test/promises`; here it gets a place of its own, and is run.
//!
//! slow: a browser, a server, and jobs in real windows.

mod acts;
mod again;
mod curves;
mod jobs;
mod log;
mod log_in;
mod looks;
mod preempted;
mod stale;
mod thumb;

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::common::env::TestEnv;

/// Which Chromium.
const CHROMIUM: &str = "/usr/bin/chromium";
/// What drives it.
const DRIVER: &str = "web/node_modules/playwright-core/package.json";
/// Where the sources of this are.
const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// A promise is looked at within this.
const PATIENCE: Duration = Duration::from_secs(180);

/// Why the page cannot be looked at here, if it cannot.
fn lacks() -> Option<String> {
    if !Path::new(CHROMIUM).exists() {
        return Some(format!("there is no {CHROMIUM}"));
    }
    if !Path::new(HERE).join(DRIVER).exists() {
        return Some("npm has not installed what web/package-lock.json names".to_owned());
    }
    None
}

/// For how many seconds the network is cut and the machine sleeps, where `./x prove page` asks for more than a few.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for() -> Option<String> {
    std::env::var("TPU_PROVE_PAGE").ok()
}

/// Holds the page to a promise; says that it is skipped where there is no browser.
#[track_caller]
fn keeps(promise: &str) {
    if let Some(why) = lacks() {
        drop(writeln!(std::io::stderr(), "skipped: {why}"));
        return;
    }
    let env = TestEnv::new();
    let script = Path::new(HERE).join("web/test/page.js").display().to_string();
    let mut spawn = env
        .spawn_program("node", &[&*script, promise])
        .env("TPU_PAGE_PROGRAM", env!("CARGO_BIN_EXE_tpu"))
        .env("TPU_PAGE_ROOT", env.root())
        .timeout(PATIENCE);
    if let Some(seconds) = asked_for() {
        spawn = spawn.env("TPU_PROVE_PAGE", seconds).timeout(4 * PATIENCE);
    }
    drop(env.output(&spawn).exits(0).says(&["kept"]));
}
