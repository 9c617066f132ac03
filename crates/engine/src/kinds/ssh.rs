//! Machines with addresses of their own, reached by OpenSSH: nobody watches them.

use super::{Destination, Door, KindOfTarget, KindOption, Refusal, Within};
use tpu_core::model::target::{Registration, TargetKind};
use tpu_system::remote::ssh;
use tpu_system::sys::env::Env;

/// What a person may say of such a machine alone.
const OPTIONS: [KindOption; 2] = [
    KindOption::new("jump", "[USER@]HOST", "Machine through which ssh reaches it, as ssh -J"),
    KindOption::new(
        "identity",
        "any",
        "any: accept whatever machine answers at its address; by default its host key must match",
    ),
];

/// The kind of targets whose addresses somebody has registered.
pub struct SshHosts;

impl KindOfTarget for SshHosts {
    fn word(&self) -> TargetKind {
        TargetKind::SSH
    }

    fn in_words(&self) -> &'static str {
        "machines with addresses of their own"
    }

    fn options(&self) -> &'static [&'static str] {
        &["address", "ssh-user", "ssh-key", "zone", "type", "pre", "spot"]
    }

    fn own_options(&self) -> &'static [KindOption] {
        &OPTIONS
    }

    fn register(&self, registration: &mut Registration, _: &Env) -> Result<(), Refusal> {
        registration.kind = self.word();
        if registration.addresses.is_empty() {
            return Err(Refusal::new(
                "machines that are reached by ssh need an address each",
                "as in: tpu register NAME --address HOST[:PORT],…",
            ));
        }
        // It becomes a word of ssh's, and of the shell by which ssh reaches it.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@:,[]%".contains(c);
        let jump = registration.options.get("jump");
        if let Some(jump) = jump.filter(|jump| jump.starts_with('-') || !jump.chars().all(is_plain))
        {
            return Err(Refusal::new(
                format!("--jump {jump}: no machine to go through"),
                "as in --jump me@login1, or login1,login2 one behind the other",
            ));
        }
        match registration.options.get("identity") {
            None | Some("any") => Ok(()),
            Some(other) => Err(Refusal::new(
                format!("--identity {other}: it can be 'any' only"),
                "without it a machine is known by its host key",
            )),
        }
    }

    fn workers(&self, asked: &Destination<'_>, within: Within<'_>) -> Result<Door, Refusal> {
        let mut config = asked.by_ssh(within, None);
        let said = |name: &str| asked.registration.and_then(|known| known.options.get(name));
        let mut options: Vec<String> = Vec::new();
        if let Some(jump) = said("jump") {
            options.extend(["-J".to_owned(), jump.to_owned()]);
        }
        if said("identity") == Some("any") {
            let unknown = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"];
            options
                .extend(unknown.iter().flat_map(|option| ["-o".to_owned(), (*option).to_owned()]));
        }
        // What comes first wins: what is said of one machine is meant for it.
        config.options.splice(0..0, options);
        let remote = ssh::open(config);
        Ok(Door { remote, is_elsewhere: true, is_by_address: true })
    }
}
