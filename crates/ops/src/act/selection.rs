//! What the words of a request mean: users, windows, selectors, `key=value`; and the jobs that they choose.

use std::collections::HashSet;
use std::fmt;

use tpu_core::model::data::{Data, User};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::target::Target;
use tpu_core::model::view::{JobView, Shown, Whose};

use crate::Error;
use crate::base::called::{self, JobWord, WaitingCalled};
use crate::base::error::did_you_mean;
use crate::base::named::{named, resolve_target};

/// Words, sorted by what they are.
#[derive(Debug, Default)]
pub struct Sorted {
    /// A known user name, `user=NAME` or `id=N`.
    pub user: Option<UserName>,
    /// `w=7`, `window=7`, `windows=7,9-12`.
    pub windows: Vec<JobNumber>,
    /// Bare integers and ranges, in order: windows or slots, as the command decides.
    pub numbers: Vec<u32>,
    /// `key=value`, in order.
    pub pairs: Vec<(String, String)>,
    /// `tag:NAME`, `tpu:NAME`, `status:NAME`.
    pub selectors: Vec<Selector>,
    /// Everything else, in order.
    pub rest: Vec<String>,
    /// The users there are, for the nearest name.
    users: Vec<UserName>,
}

/// Chooses jobs by what they are.
#[derive(Debug, PartialEq, Eq)]
pub enum Selector {
    /// By tag.
    Tag(String),
    /// By target: an alias, a full name, a pattern of names, a pool or a tag of machines.
    Target(String),
    /// By shown status or kind of error.
    Status(String),
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => write!(f, "tag:{tag}"),
            Self::Target(name) => write!(f, "tpu:{name}"),
            Self::Status(word) => write!(f, "status:{word}"),
        }
    }
}

const WINDOW_KEYS: [&str; 3] = ["w", "window", "windows"];

/// Sorts words.
pub fn sort(words: &[String], data: &Data) -> Result<Sorted, Error> {
    let users = data.users().iter().map(|user| user.name.clone()).collect();
    let mut sorted = Sorted { users, ..Sorted::default() };
    for word in words {
        if let Some((key, value)) = word.split_once('=') {
            match key {
                "user" => set_user(&mut sorted, UserName::from(value))?,
                "id" => set_user(&mut sorted, user_by_id(data, value)?)?,
                _ if WINDOW_KEYS.contains(&key) => {
                    let numbers = numbers(value).ok_or_else(|| bad_windows(word))?;
                    sorted.windows.extend(numbers.into_iter().map(JobNumber));
                }
                _ => sorted.pairs.push((key.to_owned(), value.to_owned())),
            }
        } else if data.user(&UserName::from(word.as_str())).is_some() {
            set_user(&mut sorted, UserName::from(word.as_str()))?;
        } else if let Some(numbers) = numbers(word) {
            sorted.numbers.extend(numbers);
        } else if let Some(selector) = selector(word) {
            sorted.selectors.push(selector);
        } else {
            sorted.rest.push(word.clone());
        }
    }
    Ok(sorted)
}

fn set_user(sorted: &mut Sorted, name: UserName) -> Result<(), Error> {
    match &sorted.user {
        Some(other) if *other != name => {
            Err(Error::usage(format!("two users are named: {other} and {name}"))
                .hint("name one; a value that looks like a user goes behind a key, as in tag=NAME"))
        }
        _ => {
            sorted.user = Some(name);
            Ok(())
        }
    }
}

fn user_by_id(data: &Data, value: &str) -> Result<UserName, Error> {
    let id = value.parse().map_err(|_| {
        Error::usage(format!("id={value}: not a number")).hint("`tpu list-users` shows the ids")
    })?;
    data.user_by_id(id).map(|user| user.name.clone()).ok_or_else(|| {
        Error::not_found(format!("no user has the id {value}")).hint("`tpu list-users` lists them")
    })
}

fn bad_windows(word: &str) -> Error {
    Error::usage(format!("'{word}': jobs are numbers here")).hint("as in w=7 or w=7,9-12")
}

/// `7`, `7,9-12`; `None` if the word is nothing of the kind.
fn numbers(word: &str) -> Option<Vec<u32>> {
    /// More than this is a typing error.
    const MOST: u32 = 10_000;
    let mut numbers = Vec::new();
    for part in word.split(',') {
        match part.split_once('-') {
            Some((from, to)) => {
                let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
                if from > to || to - from > MOST {
                    return None;
                }
                numbers.extend(from..=to);
            }
            None => numbers.push(part.parse().ok()?),
        }
    }
    Some(numbers)
}

fn selector(word: &str) -> Option<Selector> {
    let (key, value) = word.split_once(':')?;
    let value = value.to_owned();
    match key {
        "tag" => Some(Selector::Tag(value)),
        "tpu" => Some(Selector::Target(value)),
        "status" => Some(Selector::Status(value)),
        _ => None,
    }
}

impl Sorted {
    /// Takes out the words that are targets.
    pub(crate) fn take_targets(&mut self, data: &Data) -> Vec<String> {
        let is_target = |word: &mut String| data.resolve_target(word).is_some();
        self.rest.extract_if(.., is_target).collect()
    }

    /// Complains about words that the command has no use for.
    pub fn nothing_else(&self) -> Result<(), Error> {
        self.no_selector()?;
        self.no_other_word()
    }

    /// Complains about words that are no user, window or selector.
    pub(crate) fn no_other_word(&self) -> Result<(), Error> {
        self.no_pair()?;
        match self.rest.first() {
            // A bare word that is nothing known is most likely a name.
            Some(word) => {
                let near = did_you_mean(word, self.users.iter().map(UserName::as_str));
                Err(Error::not_found(format!("'{word}' is no user, job or selector")).hint(
                    near.unwrap_or_else(|| {
                        "`tpu list-users` lists the users, `tpu check` the jobs".to_owned()
                    }),
                ))
            }
            None => Ok(()),
        }
    }

    /// Complains about a `key=value`, where none is taken.
    pub fn no_pair(&self) -> Result<(), Error> {
        let Some((key, value)) = self.pairs.first() else { return Ok(()) };
        let near = did_you_mean(key, ["user", "id", "w", "window", "windows", "tpu"]);
        let hint = near.unwrap_or_else(|| "`tpu help COMMAND` shows what it takes".to_owned());
        Err(Error::usage(format!("'{key}={value}' means nothing here")).hint(hint))
    }

    /// Complains about a selector, where none is taken: what would choose is never ignored.
    pub fn no_selector(&self) -> Result<(), Error> {
        match self.selectors.first() {
            Some(selector) => Err(Error::usage(format!(
                "'{selector}' chooses among several jobs, and \
                 this command takes none so"
            ))
            .hint(
                "`tpu check`, `check-simp`, `kill` and `wait` take tag:NAME, tpu:NAME, status:KIND",
            )),
            None => Ok(()),
        }
    }

    /// Complains about a window or a bare number, where none is taken: it would have no effect.
    pub fn no_number(&self) -> Result<(), Error> {
        self.no_window()?;
        match self.numbers.first() {
            Some(number) => Err(Error::usage(format!("'{number}' means nothing here"))
                .hint("it takes a user and no number; `tpu help COMMAND` shows what it takes")),
            None => Ok(()),
        }
    }

    /// Complains about a window, where none is taken.
    pub fn no_window(&self) -> Result<(), Error> {
        match self.windows.first() {
            Some(window) => Err(Error::usage(format!("'w={window}' means nothing here"))
                .hint("it takes no job; `tpu help COMMAND` shows what it takes")),
            None => Ok(()),
        }
    }

    /// Takes out the words that call jobs, where a command takes any: windows, bare numbers, names. What the
    /// command knows otherwise it has taken out before: a target is a job only where one has its name. `bob/7` says
    /// whose all of them are.
    pub fn take_jobs(&mut self, data: &Data) -> Result<Vec<JobWord>, Error> {
        let has_user = self.user.is_some();
        let windows = self.windows.drain(..).chain(self.numbers.drain(..).map(JobNumber));
        let mut jobs: Vec<JobWord> = windows.map(JobWord::Number).collect();
        let mut alone = jobs.first().map(ToString::to_string);
        let mut owned = None;
        for word in std::mem::take(&mut self.rest) {
            if let Some((owner, called)) = with_owner(data, &word) {
                set_user(self, owner)?;
                match numbers(called) {
                    Some(numbers) => {
                        jobs.extend(numbers.into_iter().map(JobNumber).map(JobWord::Number));
                    }
                    None => jobs.push(JobWord::read(called)?),
                }
                owned = Some(word);
            } else if data.resolve_target(&word).is_some() && !called::is_name(data, &word) {
                return Err(Error::not_found(format!("'{word}' is a target, and no job"))
                    .hint(format!("a job that is called so: name:{word}")));
            } else {
                jobs.push(JobWord::read(&word)?);
                alone = Some(word);
            }
        }
        match (owned, alone) {
            (Some(owned), Some(alone)) if !has_user => {
                Err(Error::usage(format!("'{owned}' says whose it is, and '{alone}' does not"))
                    .hint("name the user once for all, or before each"))
            }
            _ => Ok(jobs),
        }
    }

    /// Takes `key=value` out of the pairs.
    pub fn take(&mut self, key: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(known, _)| known == key)?;
        Some(self.pairs.remove(at).1)
    }
}

/// Whether a word can be nothing else than a job, where a command takes free text as well.
pub fn is_job(data: &Data, word: &str) -> bool {
    numbers(word).is_some() || JobWord::explicit(word).is_some() || with_owner(data, word).is_some()
}

/// The owner in `bob/7`, and what it is of theirs.
fn with_owner<'a>(data: &Data, word: &'a str) -> Option<(UserName, &'a str)> {
    let (owner, called) = word.split_once('/')?;
    let owner = UserName::from(owner);
    (!called.is_empty() && data.user(&owner).is_some()).then_some((owner, called))
}

/// Complains about a job where a target is meant: whoever stops job 7 means another verb. `verb` is what was
/// typed.
pub fn no_job(data: &Data, typed: &str, verb: &str) -> Result<(), Error> {
    let (owner, word) = match typed.split_once('/') {
        Some((owner, word)) if data.user(&UserName::from(owner)).is_some() => (Some(owner), word),
        _ => (None, typed),
    };
    let number = match word.split_once('=') {
        Some((key, number)) if WINDOW_KEYS.contains(&key) => number,
        _ => word,
    };
    let is_job = numbers(number).is_some()
        || JobWord::explicit(number).is_some()
        || called::is_name(data, number);
    if data.resolve_target(typed).is_some() || !is_job {
        return Ok(());
    }
    let instead = match verb {
        "start" | "restart" | "reapply" => "resume",
        "describe" => "explain",
        _ => "kill",
    };
    let owner = owner.map(|owner| format!(" {owner}")).unwrap_or_default();
    Err(Error::usage(format!("'{typed}' is no target, and `tpu {verb}` is about targets"))
        .hint(format!("for the job: tpu {instead} {number}{owner}")))
}

/// The target that a verb of targets is about.
pub fn target(data: &Data, typed: &str, verb: &str) -> Result<Target, Error> {
    no_job(data, typed, verb)?;
    resolve_target(data, typed)
}

/// Keeps those of somebody's jobs that are called so. What nobody has a job of is an error.
pub fn choose_called(
    data: &Data,
    jobs: &mut Vec<JobView>,
    called: &[JobWord],
    whose: &Whose,
) -> Result<(), Error> {
    if called.is_empty() {
        return Ok(());
    }
    let mut chosen: HashSet<JobId> = HashSet::new();
    let mut waiting: Vec<WaitingCalled> = Vec::new();
    for word in called {
        let is_meant = |user: &&User| {
            whose.only() == Some(&user.name)
                || whose.includes(&user.name) && word.is_known_of(data, user)
        };
        let owners: Vec<&User> = data.users().iter().filter(is_meant).collect();
        if owners.is_empty() {
            return Err(match word {
                JobWord::Number(window) => Error::not_found(format!("nobody has a job {window}"))
                    .hint("`tpu check-simp` lists the jobs"),
                _ => word.unknown(data, None),
            });
        }
        for owner in owners {
            waiting.extend(word.waiting(data, &owner.name));
            if word.only_waits(data, owner)? {
                continue;
            }
            let attempts = word.attempts(data, owner)?.attempts.into_iter();
            chosen.extend(attempts.map(|window| JobId::new(owner.name.clone(), window)));
        }
    }
    jobs.retain_mut(|view| match view.shown.queued.as_mut() {
        None => chosen.contains(&view.id),
        Some(queued) => waiting.iter().any(|called| {
            let Some(members) = called.members.as_ref().filter(|_| called.id == view.id) else {
                return called.id == view.id;
            };
            let Some(waits) = &mut queued.members else {
                return view.member.is_some_and(|member| members.contains(&member.index));
            };
            waits.retain(|index| members.contains(index));
            true
        }),
    });
    Ok(())
}

/// Takes the selectors out of the words of a command that shows many jobs.
pub fn selectors(words: &[String]) -> (Vec<Selector>, Vec<String>) {
    let mut rest = Vec::new();
    let mut selectors = Vec::new();
    for word in words {
        match selector(word) {
            Some(selector) => selectors.push(selector),
            None => rest.push(word.clone()),
        }
    }
    (selectors, rest)
}

/// Keeps the jobs that every selector accepts. A word that is no status, or a target that neither exists nor
/// has a job, is an error.
pub fn choose(data: &Data, jobs: &mut Vec<JobView>, selectors: &[Selector]) -> Result<(), Error> {
    for selector in selectors {
        match selector {
            Selector::Tag(tag) => jobs.retain(|view| view.tags.as_deref() == Some(tag.as_str())),
            Selector::Target(name) => {
                let meant: Vec<TargetName> = match named(data, std::slice::from_ref(name)) {
                    Ok(targets) => targets.into_iter().map(|target| target.name).collect(),
                    // One that has been forgotten since.
                    Err(error) => {
                        let known = data.jobs().find(|job| job.tpu.as_str() == name);
                        vec![known.ok_or(error)?.tpu.clone()]
                    }
                };
                jobs.retain(|view| meant.contains(&view.target));
            }
            Selector::Status(word) if Shown::words().any(|known| known == word) => {
                jobs.retain(|view| view.shown.word() == word);
            }
            Selector::Status(word) => {
                let kind = ErrorKind::parse(word).ok_or_else(|| unknown_status(word))?;
                jobs.retain(|view| view.failure() == Some(kind));
            }
        }
    }
    Ok(())
}

fn unknown_status(word: &str) -> Error {
    let known = || Shown::words().chain(ErrorKind::ALL.iter().map(|kind| kind.as_str()));
    let all = || format!("one of {}", known().collect::<Vec<_>>().join(", "));
    Error::usage(format!("status:{word}: no status and no kind of error is called so"))
        .hint(did_you_mean(word, known()).unwrap_or_else(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        let mut data = Data::empty();
        data.add_user(&UserName::from("alice"));
        data.add_user(&UserName::from("bob"));
        data
    }

    fn sorted(line: &str) -> Result<Sorted, Error> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        sort(&words, &data())
    }

    #[test]
    fn words_may_stand_in_any_order() {
        let sorted = sorted("lr=0.01=x alice 7,9-11 w=3 tag:sweep v2-1").unwrap();
        assert_eq!(sorted.user, Some(UserName::from("alice")));
        assert_eq!(sorted.numbers, [7, 9, 10, 11]);
        assert_eq!(sorted.windows, [JobNumber(3)]);
        assert_eq!(sorted.pairs, [("lr".to_owned(), "0.01=x".to_owned())]);
        assert_eq!(sorted.selectors, [Selector::Tag("sweep".to_owned())]);
        assert_eq!(sorted.rest, ["v2-1"]);
    }

    #[test]
    fn a_value_is_never_taken_for_a_user() {
        let sorted = sorted("note=alice").unwrap();
        assert_eq!(sorted.user, None);
    }

    #[test]
    fn contradictions_and_bad_numbers_are_usage_errors() {
        assert!(sorted("alice bob").is_err());
        assert!(sorted("w=x").is_err());
        assert!(sorted("id=9").is_err());
        assert_eq!(sorted("9-7").unwrap().rest, ["9-7"], "no range: something else");
    }
}
