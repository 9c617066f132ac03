//! Says what this `tpu` is built from, for `tpu --version`. Links the programs of this package at fixed addresses, and those
//! of packages with one of equal functions.
//!
//! Position-independent, the loader would patch some 30,000 addresses at each start, and copy the pages that they are on:
//! a third of the time of a short command. Libraries stay position-independent.

use std::error::Error;
use std::io::Write;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let mut cargo = std::io::stdout();
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    let features = variable("CARGO_CFG_FEATURE").unwrap_or_default();
    let parts = features.split(',').filter(|name| !["", "default"].contains(name));
    let parts: Vec<&str> = parts.collect();
    let named = if parts.is_empty() { "none".to_owned() } else { parts.join(", ") };
    writeln!(cargo, "cargo::rustc-env=BUILT_FEATURES={named}")?;
    // A build for tests names no commit: each commit would compile all tests again.
    let is_for_tests = parts.contains(&"fail-points");
    let is_release = variable("PROFILE").is_some_and(|profile| profile == "release");
    let commit = if is_release && !is_for_tests { commit(&mut cargo)? } else { None };
    writeln!(cargo, "cargo::rustc-env=BUILT_COMMIT={}", commit.as_deref().unwrap_or("unknown"))?;

    let is_linux = variable("CARGO_CFG_TARGET_OS").is_some_and(|os| os == "linux");
    if is_linux {
        writeln!(cargo, "cargo::rustc-link-arg=-no-pie")?;
    }
    let is_small = variable("OPT_LEVEL").is_some_and(|level| level == "z");
    if is_linux && is_small {
        // Of equal functions one is kept. Only the profile `dist` has this level; the linker must be rust-lld, Rust's
        // own since 1.90, or that of tools/zig-cc.sh.
        writeln!(cargo, "cargo::rustc-link-arg=-Wl,--icf=all")?;
    }
    Ok(())
}

/// A variable in which cargo says what is built, and how.
#[expect(clippy::disallowed_methods, reason = "cargo says it there")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The commit of these sources, with `-dirty` if files were changed since. Unpacked sources have none.
fn commit(cargo: &mut impl Write) -> Result<Option<String>, Box<dyn Error>> {
    // Below the sources of another project, git would name a commit of that one.
    if !std::path::Path::new(".git").exists() {
        return Ok(None);
    }
    let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) else { return Ok(None) };
    writeln!(cargo, "cargo::rerun-if-changed={log}")?;
    Ok(git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]))
}

/// What git prints, if it succeeds.
#[expect(clippy::disallowed_methods, reason = "nothing of this workspace is built yet")]
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
