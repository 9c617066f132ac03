//! Links the programs of this package at fixed addresses, and those of packages with one of equal functions.
//!
//! Position-independent, the loader would patch some 30,000 addresses at each start, and copy the pages that they are on:
//! a third of the time of a short command. Libraries stay position-independent.

use std::error::Error;
use std::io::Write as _;

fn main() -> Result<(), Box<dyn Error>> {
    let mut cargo = std::io::stdout();
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    #[expect(clippy::disallowed_methods, reason = "cargo says there what is built for")]
    let is_linux = std::env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|os| os == "linux");
    if is_linux {
        writeln!(cargo, "cargo::rustc-link-arg=-no-pie")?;
    }
    #[expect(clippy::disallowed_methods, reason = "cargo says there how it optimises")]
    let is_small = std::env::var_os("OPT_LEVEL").is_some_and(|level| level == "z");
    if is_linux && is_small {
        // Of equal functions one is kept. Only the profile `dist` has this level; the linker must be rust-lld, Rust's
        // own since 1.90.
        writeln!(cargo, "cargo::rustc-link-arg=-Wl,--icf=all")?;
    }
    Ok(())
}
