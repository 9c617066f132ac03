//! The form of a new run: fields, proposals for the field that is being filled in, and the plan.

use std::borrow::Cow;
use std::ffi::OsString;

use tui_input::Input;

use crate::fuzzy;
use crate::message::{Act, Choices, Problem, Proposal};
use tpu_core::model::entry::Priority;
use tpu_core::model::ids::{QueueName, UserName};
use tpu_core::model::member::Array;
use tpu_core::model::spec::{CodeDir, JobSpec, TargetRequest};
use tpu_core::model::sweep::Sweep;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::front::jobfile;
use tpu_ops::front::precedent::Precedent;

/// What a field is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldId {
    /// Where the job computes.
    Target,
    /// Slot of the directory.
    Dir,
    /// `key=value`, parted by blanks.
    Configs,
    /// What happens by itself when it fails.
    Rule,
    /// Its tag.
    Tag,
    /// The command instead of `staging.sh`.
    Command,
    /// Whether each combination of values, or each row of them, is a job of its own.
    Sweep,
    /// The queue in which it waits for its turn.
    Queue,
    /// How urgent it is there.
    Priority,
    /// The name by which people call it.
    Name,
}

/// The fields from top to bottom, with what to write into them.
pub const FIELDS: [(FieldId, &str, &str); 10] = [
    (FieldId::Target, "target", "any part of its name finds it; or a job file: train.yaml"),
    (
        FieldId::Dir,
        "directory",
        "a path, or the number of a slot; empty: where the monitor was started",
    ),
    (FieldId::Configs, "configs", "lr=0.01 bs=512; aliases are proposed"),
    (FieldId::Rule, "rule", "empty: the target's own"),
    (FieldId::Tag, "tag", "may be empty"),
    (FieldId::Command, "command", "empty: staging.sh of the directory"),
    (FieldId::Sweep, "sweep", "empty: one job; each: a job for each of lr=0.1,0.01"),
    (FieldId::Queue, "queue", "empty: at once; default: when there is a place"),
    (FieldId::Priority, "priority", "in its queue, from 0 to 100; empty: 50"),
    (FieldId::Name, "name", "as in: tpu logs NAME; may be empty"),
];

/// The words of the field sweep, and what they mean.
pub const SWEEPS: [(&str, &str); 2] = [
    ("each", "a job for each combination of lr=0.1,0.01 seed=0-4"),
    ("zip", "a job of the first values, one of the second ones, and so on"),
];

/// What a form was filled in from.
#[derive(Clone, Debug)]
struct Origin {
    /// A job or a file, as people call it.
    called: String,
    /// What that was started with, or says.
    precedent: Precedent,
}

/// The form.
#[derive(Clone, Debug)]
pub struct Form {
    /// Whose run.
    pub user: UserName,
    /// What it was filled in from, if it was.
    from: Option<Origin>,
    /// The texts with which it was opened, in the order of [`FIELDS`]: of one that was filled in, what its origin says.
    opened: Vec<String>,
    /// The texts, in the order of [`FIELDS`].
    pub inputs: Vec<Input>,
    /// The field being filled in.
    pub at: usize,
    /// The marked proposal; none until somebody goes there.
    pub pick: Option<usize>,
    /// What the proposals are made of; `None` until they have been read.
    pub choices: Option<Choices>,
    /// The plan, or why there is none, and what it is about: a run, or a place in a queue.
    pub plan: Option<(Act, Result<String, Problem>)>,
    /// That of which the plan is awaited.
    pub waiting: Option<Act>,
}

impl Form {
    /// A form with these texts in [`FIELDS`]' order; missing ones are empty.
    pub fn new(user: UserName, texts: &[&str]) -> Self {
        let text = |at: usize| texts.get(at).copied().unwrap_or_default();
        let opened: Vec<String> = (0..FIELDS.len()).map(|at| text(at).to_owned()).collect();
        let inputs = opened.iter().map(|text| Input::new(text.clone())).collect();
        Self {
            opened,
            user,
            from: None,
            inputs,
            at: 0,
            pick: None,
            choices: None,
            plan: None,
            waiting: None,
        }
    }

    /// A form for this user that is filled in as a job was started, or as a file says; `called` names that.
    pub fn like(user: UserName, called: String, precedent: Precedent) -> Self {
        let Precedent { target, spec, configs, sweep, waits, .. } = &precedent;
        let swept = sweep.iter().flat_map(Sweep::axes);
        let swept = swept.map(|(key, values)| (key.clone(), values.join(",")));
        let configs: Vec<String> = configs
            .iter()
            .cloned()
            .chain(swept)
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let [(each, _), (zip, _)] = SWEEPS;
        let way = sweep.as_ref().map(|sweep| if sweep.is_zipped() { zip } else { each });
        let command = spec.command.iter().flatten().map(|word| word.to_string_lossy());
        let command: Vec<String> = command.map(Cow::into_owned).collect();
        let (queue, priority) = match waits {
            Some((queue, priority)) => (queue.to_string(), priority.to_string()),
            None => (String::new(), String::new()),
        };
        let text = |id: FieldId| match id {
            FieldId::Target => target.clone(),
            FieldId::Dir => match (spec.dir, &spec.code) {
                (Some(slot), _) => slot.to_string(),
                (None, Some(code)) => code.begins_in(),
                (None, None) => spec.execution.workplace.clone().unwrap_or_default(),
            },
            FieldId::Configs => quoted(&configs),
            FieldId::Sweep => way.unwrap_or_default().to_owned(),
            FieldId::Rule => spec.rules.clone().unwrap_or_default(),
            FieldId::Tag => spec.tag.clone().unwrap_or_default(),
            FieldId::Command => quoted(&command),
            FieldId::Queue => queue.clone(),
            FieldId::Priority => priority.clone(),
            FieldId::Name => spec.name.clone().unwrap_or_default(),
        };
        let texts: Vec<String> = FIELDS.iter().map(|(id, ..)| text(*id)).collect();
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        let form = Self::new(user, &words);
        let at = FIELDS.iter().position(|(id, ..)| *id == FieldId::Configs).unwrap_or(0);
        Self { from: Some(Origin { called, precedent }), at, ..form }
    }

    /// What it was filled in from, as people call it.
    pub(crate) fn like_what(&self) -> Option<&str> {
        self.from.as_ref().map(|from| from.called.as_str())
    }

    /// Fills it in from what a file says, but for what somebody has typed into other fields than the target.
    pub fn fill_in(&mut self, file: &str, precedent: Precedent) {
        let filled = Self::like(self.user.clone(), file.to_owned(), precedent);
        let before = std::mem::replace(self, filled);
        for (at, (input, opened)) in before.inputs.into_iter().zip(&before.opened).enumerate() {
            let is_typed = input.value().trim() != opened
                && !matches!(FIELDS.get(at), Some((FieldId::Target, ..)));
            if let Some(own) = self.inputs.get_mut(at).filter(|_| is_typed) {
                *own = input;
            }
        }
        self.choices = before.choices;
    }

    /// The job file that is named in the place of a target, until the form is filled in from it.
    pub fn file(&self) -> Option<&str> {
        let target = self.text(FieldId::Target);
        (jobfile::is_file(target) && !self.is_kept(FieldId::Target)).then_some(target)
    }

    /// What that was started with, or says.
    fn precedent(&self) -> Option<&Precedent> {
        self.from.as_ref().map(|from| &from.precedent)
    }

    /// What a field held that has been changed since the form was filled in as another job was.
    pub fn before(&self, at: usize) -> Option<&str> {
        self.from.as_ref()?;
        let now = self.inputs.get(at).map(|input| input.value().trim())?;
        self.opened.get(at).map(String::as_str).filter(|text| *text != now)
    }

    /// The arguments that no field shows: they arrive behind the configs, as those of the other job did.
    pub fn words(&self) -> &[String] {
        self.precedent().map(|precedent| precedent.words.as_slice()).unwrap_or_default()
    }

    /// Whether a field says what the job said that this one is to be like.
    pub fn is_kept(&self, wanted: FieldId) -> bool {
        let at = FIELDS.iter().position(|(id, ..)| *id == wanted);
        self.from.is_some() && at.is_some_and(|at| self.before(at).is_none())
    }

    /// The field being filled in.
    pub fn field(&self) -> FieldId {
        FIELDS.get(self.at).map_or(FieldId::Target, |(id, ..)| *id)
    }

    /// What a field holds, without blanks around it.
    pub fn text(&self, wanted: FieldId) -> &str {
        let at = FIELDS.iter().position(|(id, ..)| *id == wanted);
        at.and_then(|at| self.inputs.get(at)).map_or("", |input| input.value().trim())
    }

    /// What is proposed for the field being filled in, the likeliest first.
    pub fn proposals(&self) -> Vec<Proposal> {
        const MOST: usize = 50;
        let Some(choices) = &self.choices else { return Vec::new() };
        let typed = self.inputs.get(self.at).map_or("", Input::value);
        let (pool, typed) = match self.field() {
            FieldId::Target => (&choices.targets, typed),
            FieldId::Dir => (&choices.dirs, typed),
            FieldId::Rule => (&choices.rules, typed),
            FieldId::Queue => (&choices.queues, typed),
            FieldId::Configs => {
                // The word being typed, until it has its value.
                let word = typed.rsplit(char::is_whitespace).next().unwrap_or_default();
                if word.contains('=') {
                    return Vec::new();
                }
                (&choices.aliases, word)
            }
            FieldId::Sweep => (&choices.sweeps, typed),
            FieldId::Tag | FieldId::Command | FieldId::Priority | FieldId::Name => {
                return Vec::new();
            }
        };
        let found =
            fuzzy::best(typed, pool, |proposal| format!("{} {}", proposal.value, proposal.note));
        found.into_iter().take(MOST).cloned().collect()
    }

    /// Puts a proposal into its field.
    pub fn take(&mut self, proposal: &Proposal) {
        let is_config = self.field() == FieldId::Configs;
        let Some(input) = self.inputs.get_mut(self.at) else { return };
        let value = if is_config {
            let keep = input.value().rfind(char::is_whitespace).map_or(0, |at| at + 1);
            let before = input.value().get(..keep).unwrap_or_default();
            format!("{before}{}=", proposal.value)
        } else {
            proposal.value.clone()
        };
        *input = Input::new(value);
        self.pick = None;
    }

    /// What is described: a run, or one that waits in a queue for its turn.
    pub fn act(&self) -> Result<Act, Problem> {
        let mut request = Box::new(self.request()?);
        let sweep = self.sweep(&mut request.spec)?;
        let (queue, priority) = (self.text(FieldId::Queue), self.text(FieldId::Priority));
        // One of several is found when its turn comes.
        let is_named = matches!(request.spec.target, TargetRequest::Named(_));
        if queue.is_empty() && priority.is_empty() && request.spec.array.is_none() && is_named {
            return Ok(Act::Run(request));
        }
        let urgency = match priority {
            "" => Some(Priority::default()),
            text => Priority::parse(text),
        };
        let priority = urgency.ok_or_else(|| {
            let what = format!("priority {priority}: no number from 0 to 100");
            Problem::new(what, "higher ones come first; without a word it is 50")
        })?;
        let queue = match queue {
            "" => QueueName::usual(),
            name => QueueName::from(name),
        };
        Ok(Act::Submit { request, queue, priority, sweep })
    }

    /// What differs between the members, which are then a group.
    fn sweep(&self, spec: &mut JobSpec) -> Result<Option<Sweep>, Problem> {
        let word = self.text(FieldId::Sweep);
        if word.is_empty() {
            // A group that was a sweep is none without its values.
            if self.precedent().is_some_and(|precedent| precedent.sweep.is_some()) {
                spec.array = None;
            }
            return Ok(None);
        }
        let [_, (zip, _)] = SWEEPS;
        let hint = "as in lr=0.1,0.01 seed=0-4";
        if !SWEEPS.iter().any(|(known, _)| *known == word) {
            let words = SWEEPS.map(|(known, _)| known).join(" or ");
            return Err(Problem::new(format!("sweep {word}: {words}, or nothing"), hint));
        }
        let wrong = |what: String| Problem::new(format!("sweep: {what}"), hint);
        let sweep =
            Sweep::take(&mut spec.configs, word == zip).map_err(|e| wrong(e.to_string()))?;
        let last = sweep.members().saturating_sub(1);
        let limit = spec.array.as_ref().and_then(Array::at_once);
        let limit = limit.map(|most| format!("%{most}")).unwrap_or_default();
        let members =
            Array::parse(&format!("0-{last}{limit}")).map_err(|e| wrong(e.to_string()))?;
        spec.array = Some(members);
        Ok(Some(sweep))
    }

    /// The job that is described: as the one that it is to be like, but for what has been changed.
    fn request(&self) -> Result<RunRequest, Problem> {
        let target = self.text(FieldId::Target);
        if target.is_empty() {
            return Err(Problem::new("which target?", "`local` is this machine"));
        }
        let split = |field: FieldId, what: &str| {
            shlex::split(self.text(field)).ok_or_else(|| {
                Problem::new(format!("{what}: a quote is not closed"), "quote it as in a shell")
            })
        };
        let named = JobSpec::on(TargetRequest::Named(target.to_owned()));
        let mut spec = self.precedent().map_or(named, |precedent| precedent.spec.clone());
        if !self.is_kept(FieldId::Target) {
            spec.target = TargetRequest::Named(target.to_owned());
        }
        // What is kept stays in the order in which it was said; a sweep is taken out of what stands in the field.
        if !self.is_kept(FieldId::Configs) || !self.text(FieldId::Sweep).is_empty() {
            spec.configs.clear();
            spec.words = self.words().to_vec();
            for word in split(FieldId::Configs, "configs")? {
                let (key, value) = word.split_once('=').ok_or_else(|| {
                    Problem::new(format!("configs: '{word}' has no value"), "as in lr=0.01")
                })?;
                spec.configs.push((key.to_owned(), value.to_owned()));
            }
        }
        if !self.is_kept(FieldId::Command) {
            let command = split(FieldId::Command, "command")?;
            spec.command =
                (!command.is_empty()).then(|| command.into_iter().map(OsString::from).collect());
        }
        if !self.is_kept(FieldId::Dir) {
            let typed = self.text(FieldId::Dir);
            let is_path = typed.contains('/') || ["", ".", "..", "~"].contains(&typed);
            spec.dir = match typed.parse() {
                Err(_) if typed.is_empty() && spec.command.is_none() => Some(1),
                Err(_) if !is_path => {
                    let what = format!("directory {typed}: no slot, and no path");
                    return Err(Problem::new(what, "as in 2, or ~/exp; `tpu ls` lists slots"));
                }
                slot => slot.ok(),
            };
            spec.execution.workplace = None;
            let top = typed.to_owned();
            spec.code = spec.dir.is_none().then_some(CodeDir { top, below: None });
        }
        let given = |field| Some(self.text(field).to_owned()).filter(|text| !text.is_empty());
        spec.tag = given(FieldId::Tag);
        spec.rules = given(FieldId::Rule);
        spec.name = given(FieldId::Name);
        Ok(RunRequest::new(self.user.clone(), spec))
    }
}

/// Words as one would type them in a shell, quoted where they would be read as something else.
fn quoted(words: &[String]) -> String {
    let word = |word: &String| match shlex::split(word) {
        Some(read) if read == [word.as_str()] => word.clone(),
        _ => shlex::try_quote(word).map_or_else(|_| word.clone(), Cow::into_owned),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}
