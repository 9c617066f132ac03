//! Targets: aliases and registrations.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Register;
use crate::cli::legacy;
use crate::cli::print::Output;
use tpu_core::model::target::{Pricing, ProviderName, Registration};
use tpu_ops::Error;
use tpu_ops::act::targets;
use tpu_wire::targets::{
    ForgottenDocument, RegisteredDocument, TargetAliasDocument, TargetAliasesDocument,
};

/// `-ta ALIAS FULL`.
pub(in crate::cli) fn add_alias(app: &App, words: &[String]) -> Outcome {
    let [alias, full] = words else {
        return Err(Error::usage("an alias and a full name, please")
            .hint("as in: tpu -ta v2-32-p2 lab-tpuvm-v2-32-preemptible-2"));
    };
    let known = targets::add_alias(app.ctx()?, alias, full, &legacy::command_words())?;
    let mut notes = Vec::new();
    if !known {
        notes.push(format!(
            "nothing else is known of {full}; its zone: tpu register {full} --zone ZONE"
        ));
    }
    Ok(Output::new(
        format!("{alias} stands for {full} now."),
        &TargetAliasDocument { alias, full, known },
    )
    .notes(notes))
}

/// `-lta`.
pub(in crate::cli) fn list_aliases(app: &App) -> Outcome {
    let data = app.ctx()?.data()?;
    let mut text = String::new();
    for (alias, full) in data.registry().aliases() {
        text += &format!("{alias}: {full}\n");
    }
    if text.is_empty() {
        text.push_str("No target aliases. As in: tpu -ta v2-32-p2 FULL_NAME");
    }
    let aliases = data.registry().aliases();
    let aliases = aliases.map(|(alias, full)| (alias.to_owned(), full.as_str())).collect();
    Ok(Output::new(text, &TargetAliasesDocument { aliases }))
}

/// `register FULL`.
pub(in crate::cli) fn register(app: &App, args: &Register) -> Outcome {
    let ctx = app.ctx()?;
    let said = [
        ("provider", args.provider.is_some()),
        ("project", args.project.is_some()),
        ("endpoint", args.endpoint.is_some()),
        ("zone", args.zone.is_some()),
        ("type", args.accelerator.is_some()),
        ("pre", args.pre),
        ("spot", args.spot),
        ("address", !args.address.is_empty()),
        ("ssh-user", args.ssh_user.is_some()),
        ("ssh-key", args.ssh_key.is_some()),
    ];
    let said = said.into_iter().filter(|(_, is)| *is).map(|(word, _)| word);
    let said: Vec<&str> = said.chain(args.of_kind.said.names()).collect();
    let registration = Registration {
        kind: targets::kind(ctx, args.kind.as_deref(), &said)?,
        provider: args.provider.as_deref().map(ProviderName::new),
        project: args.project.clone(),
        endpoint: args.endpoint.clone(),
        zone: args.zone.clone(),
        accelerator: args.accelerator.clone(),
        pricing: match (args.pre, args.spot) {
            (true, _) => Pricing::Preemptible,
            (_, true) => Pricing::Spot,
            (false, false) => Pricing::OnDemand,
        },
        origin: Some("registered".to_owned()),
        addresses: args.address.clone(),
        ssh_user: args.ssh_user.clone(),
        ssh_key: args.ssh_key.clone(),
        options: args.of_kind.said.clone(),
        ..Registration::default()
    };
    let left = targets::register(ctx, &args.name, &registration, args.force)?;
    let mut notes = Vec::new();
    if let Some(job) = left {
        notes.push(format!("{job} may still run on workers that are now looked for elsewhere"));
    }
    let kind = ctx.kinds.of_registration(&registration);
    if args.zone.is_none() && kind.is_ok_and(|kind| kind.options().contains(&"zone")) {
        notes.push("without a zone, staging.sh is called without zone=".to_owned());
    }
    notes.extend(targets::doubts(ctx, &args.name));
    Ok(Output::new(
        format!("Registered {}.", args.name),
        &RegisteredDocument { registered: &args.name },
    )
    .notes(notes))
}

/// `del-registered NAME`.
pub(in crate::cli) fn forget(app: &App, words: &[String]) -> Outcome {
    let [name] = words else {
        return Err(
            Error::usage("which target? One at a time, please").hint("`tpu -lta` lists them")
        );
    };
    let forgotten = targets::forget(app.ctx()?, name)?;
    Ok(Output::new(
        format!("Forgot {forgotten} and its aliases."),
        &ForgottenDocument { forgotten: &forgotten },
    ))
}
