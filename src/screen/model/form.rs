//! The form of a new run: fields, proposals for the field that is being filled in, and the plan.

use tui_input::Input;

use crate::model::ids::UserName;
use crate::screen::fuzzy;
use crate::screen::message::Problem;

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
}

/// The fields from top to bottom, with what to write into them.
pub const FIELDS: [(FieldId, &str, &str); 6] = [
    (FieldId::Target, "target", "any part of its name finds it"),
    (FieldId::Dir, "directory", "the number of a slot, or any part of its path"),
    (FieldId::Configs, "configs", "lr=0.01 bs=512; aliases are proposed"),
    (FieldId::Rule, "rule", "empty: the target's own"),
    (FieldId::Tag, "tag", "may be empty"),
    (FieldId::Command, "command", "empty: staging.sh of the directory"),
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
    /// The plan, or why there is none, and the words that it is about.
    pub plan: Option<(Vec<String>, Result<String, Problem>)>,
    /// The words whose plan is awaited.
    pub waiting: Option<Vec<String>>,
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
            FieldId::Configs => {
                // The word being typed, until it has its value.
                let word = typed.rsplit(char::is_whitespace).next().unwrap_or_default();
                if word.contains('=') {
                    return Vec::new();
                }
                (&choices.aliases, word)
            }
            FieldId::Tag | FieldId::Command => return Vec::new(),
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

    /// The words after `tpu` that start the run.
    pub fn words(&self) -> Result<Vec<String>, Problem> {
        let target = self.text(FieldId::Target);
        if target.is_empty() {
            return Err(Problem::new("on which target?", "`local` is this machine"));
        }
        let split = |text: &str, what: &str| {
            shlex::split(text).ok_or_else(|| {
                Problem::new(format!("{what}: a quote is not closed"), "quote it as in a shell")
            })
        };
        let mut words = vec!["run".to_owned(), format!("tpu={target}")];
        words.extend(["--user".to_owned(), self.user.as_str().to_owned(), "--quiet".to_owned()]);
        let mut pair = |key: &str, value: &str| {
            if !value.is_empty() {
                words.push(format!("{key}={value}"));
            }
        };
        pair("dir", self.text(FieldId::Dir));
        pair("rule", self.text(FieldId::Rule));
        pair("tag", self.text(FieldId::Tag));
        words.extend(split(self.text(FieldId::Configs), "configs")?);
        let command = split(self.text(FieldId::Command), "command")?;
        if !command.is_empty() {
            words.push("--".to_owned());
            words.extend(command);
        }
        Ok(words)
    }
}
