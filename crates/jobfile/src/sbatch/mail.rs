//! `--mail-user` and `--mail-type`: who is told of what.

use crate::yaml::YamlValue;
use tpu_core::model::notify::Occasion;

use super::{Job, word, yaml};

/// What was said of mails.
#[derive(Default)]
pub(super) struct Mail {
    user: Option<(u64, String)>,
    types: Option<(u64, String)>,
}

impl Mail {
    /// Takes one of the two options; of several the last holds.
    pub(super) fn take(&mut self, line: u64, name: &str, value: &str) {
        let said = Some((line, value.to_owned()));
        if name == "mail-user" { self.user = said } else { self.types = said }
    }
}

/// What of ours a type of Slurm is. Of a begin nobody is told here: it is asked for by a person, or it is a resume.
fn occasions(of: &str) -> &'static [Occasion] {
    use Occasion::{Error, Finished, Preempted, Resumed, Stalled};
    match of {
        "END" => &[Finished, Error, Preempted, Stalled],
        "FAIL" => &[Error, Preempted, Stalled],
        "TIME_LIMIT" => &[Error],
        "REQUEUE" => &[Resumed],
        "ALL" => &[Finished, Error, Preempted, Stalled, Resumed],
        _ => &[],
    }
}

/// Says `notify:`, and what becomes of what it cannot say.
pub(super) fn tell(job: &mut Job) {
    let Mail { user, types } = std::mem::take(&mut job.mail);
    let Some((line, types)) = types else {
        if let Some((line, _)) = user {
            job.note(line, "--mail-user", "left out, as sbatch does: no --mail-type says of what");
        }
        return;
    };
    let Some((at, user)) = user else {
        let what = "left out: no --mail-user says who; notify: {mail: NAME@HOST} tells anybody";
        return job.note(line, "--mail-type", what);
    };
    if !user.contains('@') {
        let what =
            format!("left out: '{user}' is no address; notify: {{mail: NAME@HOST}} wants one");
        return job.note(at, "--mail-user", what);
    }
    let mut on: Vec<Occasion> = Vec::new();
    for of in types.split(',') {
        let ours = occasions(of.trim());
        if ours.is_empty() && of.trim() != "NONE" {
            job.note(line, "--mail-type", format!("left out: {of} is no event of tpu"));
        }
        on.extend(ours.iter().filter(|one| !on.contains(one)).copied().collect::<Vec<_>>());
    }
    if on.is_empty() {
        return;
    }
    let on = on.into_iter().map(|one| word(line, one.as_str())).collect();
    let members = vec![
        ("on".to_owned(), yaml(line, YamlValue::List(on))),
        ("mail".to_owned(), word(at, user)),
    ];
    job.say("notify", yaml(at, YamlValue::Map(members)));
    job.note(at, "--mail-user", "the setting smtp says which server takes the mails");
}
