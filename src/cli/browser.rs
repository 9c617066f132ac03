//! Says where a server answers, and opens a link in the browser of whoever sits here, where there is one.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::time::Duration;

use tempfile::NamedTempFile;

use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Spawn};
use tpu_wire::pages::ServingDocument;

use super::print::Output;

/// A program that opens something has handed it on within this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where it answers from now on, and the link that logs a browser in.
pub(super) fn answering(address: &str, link: Option<&str>) -> Output {
    let mut said = format!("Answering on {address}; Ctrl-C ends it.\n");
    if let Some(link) = link {
        said += &format!("{link}\nlogs a browser in, once and within five minutes, as an admin.\n");
    }
    Output::new(said, &ServingDocument { address, link })
}

/// Opens a link. What is opened is a file that leads there and that its owner alone can read: what a program is started
/// with, every account of the machine sees. It is gone with the value.
pub(super) fn open(env: &Env, link: &str) -> Option<NamedTempFile> {
    let opener = opener(env)?;
    let mut file = tempfile::Builder::new().prefix("tpu-").suffix(".html").tempfile().ok()?;
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>tpu</title><meta http-equiv=\"refresh\" content=\"0; url={link}\">"
    );
    file.write_all(page.as_bytes()).ok()?;
    let spawn = Spawn::new(opener).arg(file.path()).timeout(PATIENCE).own_group();
    // Where it cannot be opened, the link stands on the terminal.
    drop(std::thread::spawn(move || drop(proc::run(&spawn))));
    Some(file)
}

/// What opens a page: what the person says, else the desktop's own.
fn opener(env: &Env) -> Option<OsString> {
    let said = |name: &str| env.vars.get(OsStr::new(name)).filter(|value| !value.is_empty());
    if let Some(browser) = said("BROWSER") {
        return Some(browser.clone());
    }
    if cfg!(target_os = "macos") {
        return Some("open".into());
    }
    said("DISPLAY").or_else(|| said("WAYLAND_DISPLAY")).map(|_| "xdg-open".into())
}
