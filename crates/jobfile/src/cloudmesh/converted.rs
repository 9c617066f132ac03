//! Jobs of a file of Cloudmesh's as jobs of ours, each a document, with what of them has no counterpart.

use crate::converted::ConversionNote;
use crate::own::literal;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::policy::Policy;

use super::{CloudmeshFile, ImportedJob, ImportedState};

/// The words by which Cloudmesh names the machine that it runs on.
const HERE: [&str; 2] = ["localhost", "127.0.0.1"];

/// The jobs that are still to run.
pub fn converted(file: &CloudmeshFile) -> (Vec<Yaml>, Vec<ConversionNote>) {
    let mut notes = Vec::new();
    for host in &file.hosts {
        let what =
            format!("left out: `tpu import cloudmesh FILE` makes a target of it, {}", host.address);
        notes.push(note(host.line, &host.name, what));
    }
    let mut documents = Vec::new();
    for job in &file.jobs {
        let is_to_run = matches!(job.state, ImportedState::Held | ImportedState::HeldWithoutTarget);
        if !is_to_run {
            notes.push(note(
                job.line,
                &job.name,
                format!("left out: by its state it is {}", job.state.as_str()),
            ));
        } else if let Some(command) = &job.command {
            let of = Writing { file, job, notes: &mut notes };
            documents.push(of.document(command));
        } else {
            notes.push(note(job.line, &job.name, "left out: nothing says what it runs"));
        }
    }
    notes.sort_by_key(|note| note.place);
    (documents, notes)
}

fn note(line: u64, field: &str, what: impl Into<String>) -> ConversionNote {
    ConversionNote { place: (line, 1), field: field.to_owned(), what: what.into() }
}

/// A job that is written.
struct Writing<'a> {
    file: &'a CloudmeshFile,
    job: &'a ImportedJob,
    notes: &'a mut Vec<ConversionNote>,
}

impl Writing<'_> {
    fn note(&mut self, field: &str, what: impl Into<String>) {
        let field = format!("{}.{field}", self.job.name);
        self.notes.push(note(self.job.line, &field, what));
    }

    fn yaml(&self, value: YamlValue) -> Yaml {
        Yaml { line: self.job.line, column: 1, key: None, value }
    }

    fn word(&self, text: impl AsRef<str>) -> Yaml {
        self.yaml(YamlValue::Text(literal(text.as_ref())))
    }

    fn list<T: AsRef<str>>(&self, all: impl IntoIterator<Item = T>) -> Yaml {
        self.yaml(YamlValue::List(all.into_iter().map(|one| self.word(one)).collect()))
    }

    fn document(mut self, command: &str) -> Yaml {
        let job = self.job;
        let target = self.target();
        let mut all = vec![("name", self.word(&job.name)), ("target", target)];
        all.push((
            "dir",
            self.word(job.directory.as_deref().map_or_else(|| "~/.".to_owned(), below_home)),
        ));
        all.push(("code", self.word("none")));
        all.push(("command", self.command(command)));
        if let Some(output) = self.output() {
            all.push(("output", self.word(output)));
        }
        if !job.gpus.is_empty() {
            all.push(("gpu", self.list(job.gpus.iter().map(u32::to_string))));
            self.note("gpu", "on a machine of whose GPUs nobody keeps count, write env: {CUDA_VISIBLE_DEVICES: …}");
        }
        if let Some(policy) = self.file.policy.filter(|_| job.host.is_none()) {
            all.push(("policy", self.word(Policy::as_str(policy))));
        }
        if let Some(user) = &job.user {
            self.note("user", format!("left out: the account is said of its target, `tpu hosts set HOST --user {user}`"));
        }
        for field in &job.fields {
            let Some(why) = field.becomes.strip_prefix("nothing") else { continue };
            let why = why.trim_start_matches([':', ',', ' ']);
            if !field.value.is_empty() {
                self.note(&field.name, format!("left out: {why}"));
            }
        }
        let all = all.into_iter().map(|(key, value)| (key.to_owned(), value));
        self.yaml(YamlValue::Map(all.collect()))
    }

    /// Its host by its name, or those among which a scheduler chooses.
    fn target(&mut self) -> Yaml {
        let said =
            self.job.host.as_deref().map(|host| host.rsplit_once('@').map_or(host, |(_, at)| at));
        let Some(host) = said else {
            let open = self.file.hosts.iter().filter(|host| host.closed.is_none());
            let names: Vec<&str> = open.map(|host| host.name.as_str()).collect();
            if names.is_empty() {
                self.note("target", "it names no host: the pool `default`, as there");
                return self.word("default");
            }
            return self.list(names);
        };
        let of_file =
            self.file.hosts.iter().find(|known| known.name == host || known.address == host);
        match of_file {
            _ if HERE.contains(&host) => self.word("local"),
            Some(known) => self.word(&known.name),
            None => {
                let host = host.to_owned();
                self.note("target", format!("{host} has to be a target: `tpu hosts add {host}`"));
                self.word(&host)
            }
        }
    }

    /// The text that its shell reads, behind its Python environment.
    fn command(&self, command: &str) -> Yaml {
        let job = self.job;
        let mut text = String::new();
        if let Some(script) = &job.pyenv {
            text += &match script
                .strip_prefix("~/")
                .or((!script.starts_with('/')).then_some(script.as_str()))
            {
                Some(below) => format!(". ~/{} || exit\n", quoted(below)),
                None => format!(". {} || exit\n", quoted(script)),
            };
        }
        text += command;
        match job.shell.as_deref() {
            None | Some("bash") => self.word(text),
            Some(shell) => self.list([shell, "-c", &text]),
        }
    }

    /// A queue names a file for the output, a jobset a directory.
    fn output(&self) -> Option<String> {
        let said = self.job.output.as_deref()?;
        let is_of_queue = self.job.fields.iter().any(|field| field.name == "command");
        let said = said.trim_end_matches('/');
        Some(if is_of_queue { said.to_owned() } else { format!("{said}/{}.log", self.job.name) })
    }
}

/// A directory, which is below the account's home where it is no whole path.
fn below_home(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let is_whole = path.starts_with('/') || path.starts_with("~/");
    match path {
        "" | "." | "~" => "~/.".to_owned(),
        _ if is_whole => path.to_owned(),
        _ => format!("~/{}", path.strip_prefix("./").unwrap_or(path)),
    }
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map(std::borrow::Cow::into_owned).unwrap_or_default()
}
