//! Machines with addresses of their own, reached by OpenSSH: nobody watches them.

use super::{Destination, Door, KindOfTarget, Refusal, Within};
use crate::model::target::{Registration, TargetKind};
use crate::remote::ssh;
use crate::sys::env::Env;

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

    fn register(&self, registration: &mut Registration, _: &Env) -> Result<(), Refusal> {
        registration.kind = self.word();
        if registration.addresses.is_empty() {
            return Err(Refusal::new(
                "machines that are reached by ssh need an address each",
                "as in: tpu register NAME --address HOST[:PORT],…",
            ));
        }
        Ok(())
    }

    fn workers(&self, asked: &Destination<'_>, within: Within<'_>) -> Result<Door, Refusal> {
        let remote = ssh::open(asked.by_ssh(within, None));
        Ok(Door { remote, is_elsewhere: true, is_by_address: true })
    }
}
