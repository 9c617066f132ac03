//! The programs of a login node.

use tpu_system::effects::Effects;
use tpu_system::sys::proc::Feed;

use super::client::{Client, ClusterDisk, ProgramAnswer, ProgramCall, Silence};
use super::cluster::LoginNode;
use super::far::FarDisk;
use super::way::LoginWay;

/// A cluster behind a login node.
pub(super) struct LoginClient<'a> {
    way: LoginWay<'a>,
}

impl<'a> LoginClient<'a> {
    /// The cluster of a `slurm.conf` that is on that node, or its usual one.
    pub(super) fn new(login: &LoginNode, conf: Option<String>, effects: &'a Effects) -> Self {
        Self { way: LoginWay::new(login, conf, effects) }
    }
}

impl Client for LoginClient<'_> {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, Silence> {
        let seconds = call.limit.as_secs().max(1);
        // A job would inherit the environment of what submits it.
        let program = format!(
            "timeout -s KILL {seconds} env -i {}\"$@\"",
            self.way.environment(call.stdin.is_empty())
        );
        // A script of which a part is lost on the way must not be submitted.
        let (script, stdin) = match call.stdin.len() {
            0 => (program, None),
            length => (
                format!(
                    "f=$(mktemp) || exit 97; head -c {length} >\"$f\"; \
                     if [ \"$(wc -c <\"$f\")\" -eq {length} ]; then {program} <\"$f\"; c=$?; \
                     else echo 'the connection broke on the way' >&2; c=98; fi; rm -f \"$f\"; exit $c"
                ),
                Some(Feed::from(call.stdin.clone())),
            ),
        };
        let words: Vec<String> =
            std::iter::once(call.program.to_owned()).chain(call.args.iter().cloned()).collect();
        let said = self.way.there(&script, &words, (stdin, call.limit))?;
        Ok(ProgramAnswer {
            code: said.code,
            stdout: String::from_utf8_lossy(&said.stdout).into_owned(),
            stderr: said.stderr,
        })
    }

    fn disk(&self) -> Box<dyn ClusterDisk + '_> {
        Box::new(FarDisk { way: &self.way })
    }

    fn at_terminal(&self, words: &[String]) -> Vec<String> {
        self.way.at_terminal(words)
    }

    fn is_here(&self) -> bool {
        false
    }
}
