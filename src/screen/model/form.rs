//! The form of a new run: fields, proposals for the field that is being filled in, and the plan.

use std::ffi::OsString;

use tui_input::Input;

use crate::model::entry::Priority;
use crate::model::ids::{QueueName, UserName};
use crate::model::spec::{JobSpec, TargetRequest};
use crate::ops::launch::RunRequest;
use crate::screen::fuzzy;
use crate::screen::message::{Act, Problem};

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
    /// The queue in which it waits for its turn.
    Queue,
    /// How urgent it is there.
    Priority,
}

/// The fields from top to bottom, with what to write into them.
pub const FIELDS: [(FieldId, &str, &str); 8] = [
    (FieldId::Target, "target", "any part of its name finds it"),
    (FieldId::Dir, "directory", "the number of a slot, or any part of its path"),
    (FieldId::Configs, "configs", "lr=0.01 bs=512; aliases are proposed"),
    (FieldId::Rule, "rule", "empty: the target's own"),
    (FieldId::Tag, "tag", "may be empty"),
    (FieldId::Command, "command", "empty: staging.sh of the directory"),
    (FieldId::Queue, "queue", "empty: at once; default: when there is a place"),
    (FieldId::Priority, "priority", "in its queue, from 0 to 100; empty: 50"),
];

/// What a field may be filled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The text for the field.
    pub value: String,
    /// What that is.
    pub note: String,
}

/// Everything that the proposals are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Targets with how they are.
    pub targets: Vec<Proposal>,
    /// Slots with their paths.
    pub dirs: Vec<Proposal>,
    /// Config aliases with what they stand for.
    pub aliases: Vec<Proposal>,
    /// Rules with what they do.
    pub rules: Vec<Proposal>,
    /// Queues with what holds for them.
    pub queues: Vec<Proposal>,
}

/// The form.
#[derive(Clone, Debug)]
pub struct Form {
    /// Whose run.
    pub user: UserName,
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
        let inputs = (0..FIELDS.len()).map(|at| Input::new(text(at).to_owned())).collect();
        Self { user, inputs, at: 0, pick: None, choices: None, plan: None, waiting: None }
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
            FieldId::Tag | FieldId::Command | FieldId::Priority => return Vec::new(),
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
        let request = Box::new(self.request()?);
        let (queue, priority) = (self.text(FieldId::Queue), self.text(FieldId::Priority));
        if queue.is_empty() && priority.is_empty() {
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
        Ok(Act::Submit { request, queue, priority })
    }

    /// The job that is described.
    fn request(&self) -> Result<RunRequest, Problem> {
        let target = self.text(FieldId::Target);
        if target.is_empty() {
            return Err(Problem::new("on which target?", "`local` is this machine"));
        }
        let split = |field: FieldId, what: &str| {
            shlex::split(self.text(field)).ok_or_else(|| {
                Problem::new(format!("{what}: a quote is not closed"), "quote it as in a shell")
            })
        };
        let dir = match self.text(FieldId::Dir) {
            "" => Some(1),
            slot => Some(slot.parse().map_err(|_| {
                Problem::new(format!("directory {slot}: slots are numbers"), "`tpu ls` lists them")
            })?),
        };
        let mut configs = Vec::new();
        for word in split(FieldId::Configs, "configs")? {
            let (key, value) = word.split_once('=').ok_or_else(|| {
                Problem::new(format!("configs: '{word}' has no value"), "as in lr=0.01")
            })?;
            configs.push((key.to_owned(), value.to_owned()));
        }
        let command = split(FieldId::Command, "command")?;
        let given = |field| Some(self.text(field).to_owned()).filter(|text| !text.is_empty());
        let spec = JobSpec {
            dir,
            configs,
            command: (!command.is_empty())
                .then(|| command.into_iter().map(OsString::from).collect()),
            tag: given(FieldId::Tag),
            rules: given(FieldId::Rule),
            ..JobSpec::on(TargetRequest::Named(target.to_owned()))
        };
        Ok(RunRequest { user: self.user.clone(), spec, on: None, force: false })
    }
}
