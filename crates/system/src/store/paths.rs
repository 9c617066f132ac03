//! Where things are: everything lies beside the data file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tpu_core::model::ids::{JobId, TargetName};

/// So many older parts of the journal are kept.
pub(super) const OLDER_PARTS: u32 = 3;

/// The files and directories that belong to one data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    data: PathBuf,
    dir: PathBuf,
}

impl Paths {
    /// The paths around a data file.
    pub fn new(data: PathBuf) -> Self {
        let dir = match data.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Self { data, dir }
    }

    /// The data file.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The directory of the data file.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Name of the data file.
    pub(super) fn name(&self) -> String {
        self.data.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// What the names of temporary files begin with.
    pub(super) fn temporary_prefix(&self) -> String {
        format!(".{}.tmp-", self.name())
    }

    /// The file that writers lock.
    pub fn lock(&self) -> PathBuf {
        self.dir.join(format!("{}.lock", self.name()))
    }

    /// Where the original, if it works on the same file, says that it does.
    pub fn original_lock(&self) -> PathBuf {
        self.dir.join("lock.json")
    }

    /// Earlier versions of the data file.
    pub fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    /// Everything else that we keep.
    pub fn state(&self) -> PathBuf {
        self.dir.join("tpu-state")
    }

    /// The directory of one job: launcher, exit code, environment.
    pub fn job(&self, id: &JobId) -> PathBuf {
        let user = plain(id.user.as_str());
        self.state().join("jobs").join(user).join(id.window.to_string())
    }

    /// Where environments are laid by for what waits.
    pub fn environments(&self) -> PathBuf {
        self.state().join("environments")
    }

    /// Machines that do not answer those who attend to a job there, one file for each.
    pub fn silences(&self) -> PathBuf {
        self.state().join("silences")
    }

    /// Logs that take nothing more, one file for each launch.
    pub fn unwritten(&self) -> PathBuf {
        self.state().join("unwritten")
    }

    /// The journal.
    pub fn events(&self) -> PathBuf {
        self.state().join("events.jsonl")
    }

    /// An older part of the journal; 1 is the youngest.
    pub(super) fn older_events(&self, n: u32) -> PathBuf {
        self.state().join(format!("events.{n}.jsonl"))
    }

    /// Records that were cleaned away.
    pub fn archive(&self) -> PathBuf {
        self.state().join("archive.jsonl")
    }

    /// Held by the one daemon of this data file and of one place, which `place` names in plain letters.
    pub fn daemon_lock(&self, place: &str) -> PathBuf {
        self.state().join(format!("daemon-{place}.lock"))
    }

    /// Held by whoever starts that daemon.
    pub(crate) fn daemon_start(&self, place: &str) -> PathBuf {
        self.state().join(format!("daemon-{place}.start.lock"))
    }

    /// Held by the process that passes over what waits at a place.
    pub fn pass_lock(&self, place: &str) -> PathBuf {
        self.state().join(format!("pass-{place}.lock"))
    }

    /// Exists when something has changed since the last pass there began.
    pub fn pass_note(&self, place: &str) -> PathBuf {
        self.state().join(format!("pass-{place}.note"))
    }

    /// What that daemon says about itself.
    pub fn daemon_note(&self, place: &str) -> PathBuf {
        self.state().join(format!("daemon-{place}.json"))
    }

    /// The same by the name of a file of the state directory, if it is one.
    pub fn daemon_note_named(&self, name: &str) -> Option<PathBuf> {
        let place = name.strip_prefix("daemon-")?.strip_suffix(".json")?;
        Some(self.daemon_note(place))
    }

    /// Why the daemon that was started last could not begin, in its own words.
    pub fn daemon_error(&self, place: &str) -> PathBuf {
        self.state().join(format!("daemon-{place}.error"))
    }

    /// What that daemon prints, where no window shows it.
    pub fn daemon_output(&self, place: &str) -> PathBuf {
        self.state().join(format!("daemon-{place}.log"))
    }

    /// Exists once a command has started that daemon by itself, and said how to forbid it.
    pub fn daemon_autostarted(&self, place: &str) -> PathBuf {
        self.state().join(format!("daemon-{place}.autostarted"))
    }

    /// What a server says about itself, by the number of its process.
    pub fn server_note(&self, pid: u32) -> PathBuf {
        self.state().join(format!("server-{pid}.json"))
    }

    /// When a user last asked what is new.
    pub fn seen(&self, user: &str) -> PathBuf {
        self.state().join(format!("seen-{}", plain(user)))
    }

    /// The jobset of Cloudmesh that a user works with; without a user, the one of whoever names none.
    pub fn jobset(&self, user: Option<&str>) -> PathBuf {
        let name = user.map_or_else(|| "jobset".to_owned(), |u| format!("jobset-{}", plain(u)));
        self.state().join(name)
    }

    /// The lines that a user has typed on the screen; without a user, those typed for everybody's jobs.
    pub fn remembered(&self, user: Option<&str>) -> PathBuf {
        self.state().join(
            user.map_or_else(
                || "typed.txt".to_owned(),
                |user| format!("typed-{}.txt", plain(user)),
            ),
        )
    }

    /// Held by whoever works on a target.
    pub(crate) fn target_lock(&self, target: &TargetName) -> PathBuf {
        self.state().join(format!("target-{}.lock", plain(target.as_str())))
    }

    /// What the steps of recipes said on the workers of a target.
    pub fn recipe_logs(&self, target: &TargetName) -> PathBuf {
        self.state().join("recipes").join(plain(target.as_str()))
    }

    /// What the daemon last heard of the targets from their control plane.
    pub fn heard(&self) -> PathBuf {
        self.state().join("heard.json")
    }

    /// Held by the daemon that asks them, where there are several.
    pub(crate) fn heard_lock(&self) -> PathBuf {
        self.state().join("heard.lock")
    }

    /// What machines last said to a daemon before it would have started something there.
    pub fn machines_heard(&self) -> PathBuf {
        self.state().join("machines.json")
    }

    /// What an account of this machine has asked control planes, and may ask: others need rights of their own.
    pub fn asked(&self, uid: u32) -> PathBuf {
        self.state().join(format!("asked-{uid}.json"))
    }

    /// What machines said last of themselves and of the jobs on them.
    pub fn figures(&self) -> PathBuf {
        self.state().join("figures.json")
    }

    /// Held by the one who asks them.
    pub(crate) fn figures_lock(&self) -> PathBuf {
        self.state().join("figures.lock")
    }

    /// What is still to be told to people.
    pub fn outbox(&self) -> PathBuf {
        self.state().join("outbox.json")
    }

    /// Held by whoever changes that.
    pub fn outbox_lock(&self) -> PathBuf {
        self.state().join("outbox.lock")
    }

    /// The tokens of the API that an account of this machine has made.
    pub fn tokens(&self, uid: u32) -> PathBuf {
        self.state().join(format!("tokens-{uid}.json"))
    }

    /// The host keys that OpenSSH has learned.
    pub fn known_hosts(&self) -> PathBuf {
        self.state().join("known_hosts")
    }

    /// The files that every account writes where several share the directory. What one account keeps for itself is not
    /// among them.
    pub fn of_all_accounts(&self) -> Vec<PathBuf> {
        let parts = (1..=OLDER_PARTS).map(|n| self.older_events(n));
        let rest = [
            self.data.clone(),
            self.lock(),
            self.events(),
            self.archive(),
            self.heard(),
            self.heard_lock(),
            self.machines_heard(),
            self.figures(),
            self.figures_lock(),
            self.outbox(),
            self.outbox_lock(),
            self.known_hosts(),
            self.sim(),
        ];
        parts.chain(rest).collect()
    }

    /// The simulated fleet.
    pub fn sim(&self) -> PathBuf {
        self.state().join("sim.json")
    }
}

/// A name from the file, which may hold anything, as the name of a file: what is no plain character is
/// escaped.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            plain.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(plain, "%{byte:02x}");
        }
    }
    plain
}
