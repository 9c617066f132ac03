//! `tpu doctor`: what is wrong, each with its remedy.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Doctor;
use crate::cli::print::Output;
use tpu_ops::front::disk_use;
use tpu_ops::front::doctor::{self, Severity};
use tpu_ops::front::{locks, upgrade};
use tpu_wire::doctor::{FindingPart, FindingsDocument, LockDocument, RestoredDocument};

/// Looks everything over, or puts a backup back.
pub(in crate::cli) fn doctor(app: &App, args: &Doctor) -> Outcome {
    let ctx = app.ctx()?;
    if let Some(n) = args.restore {
        let restored = doctor::restore(ctx, n)?;
        let text =
            format!("Restored {}; what was there before is a backup now.", restored.display());
        return Ok(Output::new(
            text,
            &RestoredDocument { restored: restored.to_string_lossy().into_owned() },
        ));
    }
    if let Some(probe) = &args.probe_lock {
        let free = locks::is_free(ctx, probe);
        let code = if free { 0 } else { locks::BUSY };
        return Ok(Output::new("", &LockDocument { free }).code(code));
    }
    let done = if args.fix { doctor::fix(ctx)? } else { Vec::new() };
    let mut findings = doctor::look(ctx);
    findings.extend(upgrade::look(ctx));
    findings.extend(locks::look(ctx));
    findings.push(disk_use::look(ctx));
    let mut text = String::new();
    for what in &done {
        text += &format!("fixed {what}\n");
    }
    for finding in &findings {
        text += &format!("{:<5} {}\n", finding.severity.as_str(), finding.what);
        if let Some(remedy) = &finding.remedy {
            text += &format!("      -> {remedy}\n");
        }
    }
    let broken = findings.iter().any(|finding| finding.severity == Severity::Broken);
    let document = FindingsDocument {
        findings: findings.iter().map(FindingPart::from).collect(),
        fixed: &done,
    };
    Ok(Output::new(text, &document).code(u8::from(broken)))
}
