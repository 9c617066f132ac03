//! The environment variables that mean something to this program, its jobs and its scripts: **the one table of
//! them**. Whoever keeps, hands on or takes away a variable asks here.

use std::ffi::{OsStr, OsString};
use std::fmt;

use super::capacity::Accelerators;

/// Who gives a variable its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// A person, for commands. Some of these a launch sets as well, so that a job means the same by them.
    Person,
    /// A launch, for its job.
    Launch,
    /// Whatever supervises a command, here or on a worker: the launcher, the door to a worker, its guard.
    Supervisor,
}

/// One of our variables. None holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Who sets it first.
    pub set_by: SetBy,
    /// Whether a launch hands it on to its successors as it was. What is not is made anew for each.
    pub is_kept: bool,
    /// Whether it means nothing on another machine.
    pub stays_here: bool,
    /// Whether processes that carry it are taken for those of the job: what is started for another end must not.
    pub claims: bool,
}

const fn variable(name: &'static str, set_by: SetBy) -> Variable {
    let is_kept = matches!(set_by, SetBy::Person);
    Variable { name, set_by, is_kept, stays_here: false, claims: false }
}

const fn here(variable: Variable) -> Variable {
    Variable { stays_here: true, ..variable }
}

const fn claims(variable: Variable) -> Variable {
    Variable { claims: true, ..variable }
}

/// All of them.
pub const VARIABLES: [Variable; 27] = [
    variable("TPU_USER", SetBy::Person),
    variable("TPU_DAEMON_AUTOSTART", SetBy::Person),
    variable("TPU_CLOUD", SetBy::Person),
    variable("TPU_CLOUD_AUTH", SetBy::Person),
    variable("TPU_CLOUD_ENDPOINT", SetBy::Person),
    variable("TPU_PROJECT", SetBy::Person),
    here(variable("TPU_SETTINGS", SetBy::Person)),
    here(variable("TPU_SSH_DIR", SetBy::Person)),
    here(variable("TPU_TMUX_SOCKET", SetBy::Person)),
    // What a person insists on is no job's to insist on.
    Variable { is_kept: false, ..here(variable("TPU_BESIDE_ORIGINAL", SetBy::Person)) },
    // A successor belongs to the file in which it is claimed, whatever its parent was told.
    Variable { is_kept: false, ..here(variable("TPU_DATA", SetBy::Person)) },
    here(variable("TPU_BIN", SetBy::Launch)),
    claims(variable("TPU_JOB", SetBy::Launch)),
    variable("TPU_TARGET", SetBy::Launch),
    variable("TPU_LOG_DIR", SetBy::Launch),
    variable("TPU_STAGE_DIR", SetBy::Launch),
    variable("TPU_ATTEMPT", SetBy::Launch),
    variable("TPU_CHECKPOINT", SetBy::Launch),
    variable("TPU_CHECKPOINT_DIR", SetBy::Launch),
    variable("TPU_CHECKPOINT_STEP", SetBy::Launch),
    // Where the first of a lineage was typed.
    Variable { is_kept: true, ..variable("TPU_SUBMIT_DIR", SetBy::Launch) },
    variable("TPU_WORKER", SetBy::Launch),
    variable("TPU_SETUP", SetBy::Supervisor),
    variable("TPU_GROUP", SetBy::Launch),
    variable("TPU_MEMBER", SetBy::Launch),
    claims(variable("TPU_LAUNCH", SetBy::Supervisor)),
    claims(variable("TPU_MACHINE", SetBy::Supervisor)),
];

/// By which Weights & Biases goes on with a run: its id, and that it may be there already (its documentation, resume).
pub const TRACKED_RUN: [&str; 2] = ["WANDB_RUN_ID", "WANDB_RESUME"];

/// The accelerators that a program sees, by their numbers: none where it is empty (CUDA C++ Programming Guide,
/// environment variables; the documentation of `ROCm`, GPU isolation; Cloud TPU documentation, several processes).
pub fn of_devices(whose: Accelerators) -> &'static str {
    match whose {
        Accelerators::Nvidia => "CUDA_VISIBLE_DEVICES",
        Accelerators::Amd => "ROCR_VISIBLE_DEVICES",
        Accelerators::Tpu => "TPU_VISIBLE_CHIPS",
    }
}

/// Has CUDA count GPUs as their driver does, and not the fastest first (CUDA C++ Programming Guide, environment
/// variables): else one number would be two GPUs.
pub const DEVICE_ORDER: (&str, &str) = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID");

/// Of the account's own variables those that say where programs are: a job needs them as well as `tpu` does, and
/// another machine has its own.
const PROGRAMS: [&str; 4] = ["PATH", "VIRTUAL_ENV", "PYTHONPATH", "SHELL"];

/// The same by how they begin.
const FAMILIES: [&str; 3] = ["CONDA_", "_CE_", "MAMBA_"];

/// Variables of a shell that say something about it, its terminal or its login: whatever it starts for later has others.
const OF_SHELL: [&str; 13] = [
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "WINDOWID",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "SHLVL",
    "PWD",
    "OLDPWD",
    "_",
    "LS_COLORS",
];

/// The same by how they begin.
const FAMILIES_OF_SHELL: [&str; 6] =
    ["TMUX", "TERM_PROGRAM", "SSH_", "XDG_SESSION_", "DBUS_", "BASH_FUNC_"];

/// Of the account's own variables those with which a server of windows is started, beside what says where programs are.
const OF_SERVER: [&str; 10] = [
    "HOME",
    "USER",
    "LOGNAME",
    "MAIL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "FAILPOINTS",
];

/// The same by how they begin.
const FAMILIES_OF_SERVER: [&str; 2] = ["LC_", "XDG_"];

/// By how they begin: with these `tpu` itself reaches clouds and clusters, also where it runs in a window.
const OF_PROVIDERS: [&str; 6] =
    ["CLOUDSDK_", "GOOGLE_", "GCE_METADATA_", "KUBE", "SLURM_", "SSL_CERT_"];

/// What is in the name of a secret. A launch keeps none.
const SECRETS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// Variables whose values are nobody's business; they are not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub Vec<(OsString, OsString)>);

impl Secrets {
    /// The value of one.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// What is wrong with a name of a variable that a job is given, and what to do about it.
pub fn as_own(name: &str) -> Result<(), (&'static str, &'static str)> {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !name.starts_with(begins) || !name.chars().all(|c| begins(c) || c.is_ascii_digit()) {
        return Err(("no name of a variable", "letters, digits and _, and no digit first"));
    }
    if of_ours(name).is_some() {
        return Err(("tpu sets it for each job", "leave it away"));
    }
    Ok(())
}

/// Variables of bash that it sets itself, or goes by (its manual, shell variables).
const BASH: [&str; 13] = [
    "UID",
    "EUID",
    "PPID",
    "GROUPS",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_VERSINFO",
    "BASH_ENV",
    "ENV",
    "IFS",
    "HOME",
    "SECONDS",
    "RANDOM",
];

/// The same of one whose value is nobody's business: what is kept of the environment of a launch is none.
pub fn as_secret(name: &str) -> Result<(), (&'static str, &'static str)> {
    as_own(name)?;
    if name.contains(|c: char| c.is_ascii_lowercase()) {
        return Err((
            "scripts of tpu may mean another thing by it",
            "use capitals, as in WANDB_API_KEY",
        ));
    }
    if BASH.contains(&name) {
        return Err(("bash sets it", "give it another name"));
    }
    if is_of_programs(name) || name.starts_with("TPU_") {
        return Err(("what is called so is kept with each job", "give it another name"));
    }
    Ok(())
}

/// One of ours, by its name.
pub fn of_ours(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

/// Whether a launch keeps a variable for its job and its successors. Others than ours that begin as ours do are
/// of libraries, and kept.
pub fn is_kept(name: &str) -> bool {
    let is_meant = match of_ours(name) {
        Some(variable) => variable.is_kept,
        None => is_of_programs(name) || name.starts_with("TPU_"),
    };
    is_meant && !looks_secret(name)
}

/// Whether a command has a variable of the shell in which it is typed, as it would have it there.
pub fn is_handed_on(name: &str) -> bool {
    of_ours(name).is_none() && !is_of_shell(name)
}

/// Whether a server of windows may be started with a variable: it gives it to every window that it ever opens, and shows it
/// to everybody who asks. What a shell exported is for the job alone that was typed there.
pub fn is_of_server(name: &str) -> bool {
    let is_own = OF_SERVER.contains(&name)
        || FAMILIES_OF_SERVER.iter().any(|family| name.starts_with(family))
        || is_of_shell(name) && !name.starts_with("BASH_FUNC_");
    let reaches = OF_PROVIDERS.iter().any(|family| name.starts_with(family))
        || name.to_ascii_lowercase().ends_with("_proxy");
    is_kept(name) || reaches || is_own && !looks_secret(name)
}

fn is_of_shell(name: &str) -> bool {
    OF_SHELL.contains(&name) || FAMILIES_OF_SHELL.iter().any(|family| name.starts_with(family))
}

/// Whether a variable belongs to the window: the value of a shell never replaces it.
pub fn is_of_window(name: &str) -> bool {
    name == "TERM" || ["TMUX", "TERM_PROGRAM"].iter().any(|family| name.starts_with(family))
}

/// Whether a variable says something about this machine alone.
pub fn stays_here(name: &str) -> bool {
    is_of_programs(name) || of_ours(name).is_some_and(|variable| variable.stays_here)
}

/// The variables that belong to one job alone: whatever outlives the job must not have them.
pub fn of_jobs() -> impl Iterator<Item = &'static str> {
    let of_jobs = VARIABLES.iter().filter(|variable| variable.set_by != SetBy::Person);
    of_jobs.map(|variable| variable.name)
}

/// The variables by which a process is taken for one of a job.
pub fn claiming() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().filter(|variable| variable.claims).map(|variable| variable.name)
}

fn is_of_programs(name: &str) -> bool {
    PROGRAMS.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Whether a name says that its value is nobody's business.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRETS.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_there_twice_and_none_is_that_of_a_secret() {
        for (i, Variable { name, .. }) in VARIABLES.iter().enumerate() {
            assert!(!looks_secret(name), "{name}");
            assert!(VARIABLES.iter().skip(i + 1).all(|other| other.name != *name), "{name}");
        }
    }

    #[test]
    fn what_names_one_job_goes_to_no_other() {
        let of_one = of_jobs().filter(|name| *name != "TPU_SUBMIT_DIR");
        for name in of_one.chain(["TPU_DATA", "HF_TOKEN", "TPU_API_KEY", "HOME"]) {
            assert!(!is_kept(name), "{name}");
        }
        for name in ["PATH", "CONDA_PREFIX", "TPU_USER", "TPU_CLOUD", "TPU_NAME"] {
            assert!(is_kept(name), "{name}");
        }
        assert!(claiming().all(|name| of_jobs().any(|of_job| of_job == name)));
    }

    #[test]
    fn a_command_has_what_its_shell_exported_and_a_server_of_windows_has_not() {
        for name in ["FOO", "HF_TOKEN", "CUDA_VISIBLE_DEVICES", "lower_case", "WANDB_MODE"] {
            assert!(is_handed_on(name) && !is_of_server(name), "{name}");
        }
        for name in ["TMUX_PANE", "SSH_AUTH_SOCK", "SHLVL", "DBUS_SESSION_BUS_ADDRESS", "TPU_JOB"] {
            assert!(!is_handed_on(name), "{name}");
        }
        for name in [
            "HOME",
            "PATH",
            "LC_ALL",
            "XDG_CONFIG_HOME",
            "TPU_USER",
            "SSH_AUTH_SOCK",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "https_proxy",
        ] {
            assert!(is_of_server(name), "{name}");
        }
        assert!(!is_of_server("BASH_FUNC_f%%") && !is_of_server("TPU_DATA"));
    }

    #[test]
    fn another_machine_has_its_own_programs_and_files() {
        for name in ["PATH", "MAMBA_ROOT", "TPU_BIN", "TPU_DATA", "TPU_SSH_DIR"] {
            assert!(stays_here(name), "{name}");
        }
        for name in ["TPU_LOG_DIR", "TPU_JOB", "PYTHONUNBUFFERED", "TPU_CLOUD"] {
            assert!(!stays_here(name), "{name}");
        }
    }
}
