//! Whose: which user a request is about, and which of their jobs. The one place where this is decided.
//!
//! The name in the request, `TPU_USER`, the setting `user`, the account's own user, the only user there is.
//! Where none of these says who, a request that only looks means the one user who has the window; what shows
//! lists shows everybody; whatever else asks, and without a person to ask it is an error.

use std::collections::HashSet;

use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::view::{JobView, Whose};

use super::queue::shown::{self, WaitingMembers, waits_yet};
use crate::act::selection::{self, Selector, Sorted};
use crate::base::account;
use crate::base::called::{JobWord, WaitingCalled};
use crate::base::ctx::{job_of, user_of};
use crate::observe::snapshot;
use crate::{Ctx, Error};

/// What a request does with what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It shows it: the wrong user's would be seen and harm nobody.
    Look,
    /// It changes it.
    Change,
}

/// What a request says about the user that it is about.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// The user among its words.
    pub word: Option<UserName>,
    /// What is done.
    pub purpose: Purpose,
    /// The words by which it calls jobs of theirs.
    pub jobs: &'a [JobWord],
}

/// Which of a user's jobs a request for several is about, beside those that its words choose.
#[derive(Clone, Copy, Debug)]
pub struct Several {
    /// All to which the request applies.
    pub all: bool,
    /// What is done to them.
    pub purpose: Purpose,
}

/// What a request for several means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    /// Jobs, by their attempts.
    pub jobs: Vec<JobId>,
    /// What waits in a queue and has no attempt yet.
    pub waiting: Vec<WaitingCalled>,
}

/// Asks which of the users there are is meant.
pub(crate) type AskWhose<'a> = Box<dyn Fn(&Data) -> Result<UserName, Error> + 'a>;

/// Whoever makes a request: a person at a terminal, the screen, or somebody far away.
pub struct Requester<'a> {
    /// The surroundings of the request.
    pub ctx: &'a Ctx,
    /// The user whom it names beside its words, as `--user` does.
    pub named: Option<UserName>,
    /// How to ask which user is meant, where nothing says it; [`unnamed`] where nobody can be asked.
    pub ask: AskWhose<'a>,
}

/// The error where nothing says which user is meant and nobody can be asked.
pub fn unnamed(data: &Data) -> Error {
    let names: Vec<&str> = data.users().iter().map(|user| user.name.as_str()).collect();
    Error::usage(format!("whose? There are {}", names.join(", ")))
}

impl Requester<'_> {
    /// The user whom the words, the flags, the environment, the settings or the account name; `None` if
    /// nothing does. Asks nobody.
    pub fn user_named(
        &self,
        data: &Data,
        word: Option<&UserName>,
    ) -> Result<Option<UserName>, Error> {
        if let (Some(word), Some(flag)) = (word, &self.named)
            && word != flag
        {
            return Err(Error::usage(format!("two users are named: {word} and --user {flag}"))
                .hint("name one"));
        }
        match word.or(self.named.as_ref()) {
            Some(name) => user_of(data, name).map(|user| Some(user.name.clone())),
            None => self.user_at_work(data),
        }
    }

    /// The user who is at work here, whoever a request is about: whom the environment, the settings or the
    /// account name.
    pub fn user_at_work(&self, data: &Data) -> Result<Option<UserName>, Error> {
        account::user_at_work(self.ctx, data)
    }

    /// The user by whose settings times are shown: whom the setting `user` names, else the one that a request is about, else
    /// whom the account names.
    pub fn reader(&self, data: &Data, about: Option<&UserName>) -> Option<UserName> {
        let said = self.ctx.settings(None).ok().and_then(|settings| settings.user);
        let about = about.or(self.named.as_ref()).filter(|_| said.is_none());
        let named = about.and_then(|name| data.user(name)).map(|user| user.name.clone());
        named.or_else(|| self.user_at_work(data).ok().flatten())
    }

    /// The one user that a request is about.
    pub fn user(&self, data: &Data, about: &About<'_>) -> Result<UserName, Error> {
        if let Some(user) = self.user_named(data, about.word.as_ref())? {
            return Ok(user);
        }
        if about.purpose == Purpose::Look && !about.jobs.is_empty() {
            let has_all = |user: &&User| about.jobs.iter().all(|word| word.is_known_of(data, user));
            let mut holders = data.users().iter().filter(has_all);
            if let (Some(only), None) = (holders.next(), holders.next()) {
                return Ok(only.name.clone());
            }
        }
        (self.ask)(data)
    }

    /// The user that a request is about, where it takes nothing else.
    pub fn only_user(&self, words: &[String]) -> Result<UserName, Error> {
        let data = self.ctx.data()?;
        let sorted = selection::sort(words, &data)?;
        sorted.nothing_else()?;
        sorted.no_number()?;
        self.user(&data, &About { word: sorted.user, purpose: Purpose::Change, jobs: &[] })
    }

    /// The user that a request is about, and those of their jobs that it names, if it names any.
    pub fn user_and_jobs(&self, words: &[String]) -> Result<(UserName, Vec<JobId>), Error> {
        let data = self.ctx.data()?;
        let mut sorted = selection::sort(words, &data)?;
        sorted.no_selector()?;
        sorted.no_pair()?;
        let words = sorted.take_jobs(&data)?;
        let user = self.owner(&data, sorted.user, &words, Purpose::Change)?;
        let (mut jobs, of_groups) = attempts(&data, &user, &words, Purpose::Look)?;
        jobs.extend(of_groups);
        Ok((user, jobs))
    }

    /// Whose jobs a list shows that takes users and nothing else.
    pub fn users_of_list(&self, words: &[String]) -> Result<Whose, Error> {
        let data = self.ctx.data()?;
        let (named, sorted) = Self::users_among(&data, words)?;
        sorted.nothing_else()?;
        let whose = self.whose(&data, named)?;
        sorted.no_number()?;
        Ok(whose)
    }

    /// The users whose jobs a list shows: those who are named; else the one that an option, the environment or
    /// the settings name; else everybody. The words may also call jobs, and nothing else.
    pub fn users_and_jobs_of_list(&self, words: &[String]) -> Result<(Whose, Vec<JobWord>), Error> {
        let data = self.ctx.data()?;
        let (mut named, mut sorted) = Self::users_among(&data, words)?;
        sorted.no_selector()?;
        let jobs = sorted.take_jobs(&data)?;
        sorted.no_pair()?;
        named.extend(sorted.user);
        let whose = self.whose(&data, named)?;
        Ok((whose, jobs))
    }

    /// The users that are named, and the other words.
    fn users_among(data: &Data, words: &[String]) -> Result<(Vec<UserName>, Sorted), Error> {
        let mut named: Vec<UserName> = Vec::new();
        let mut rest = Vec::new();
        for word in words {
            match selection::sort(std::slice::from_ref(word), data)?.user {
                Some(user) => named.push(user_of(data, &user)?.name.clone()),
                None => rest.push(word.clone()),
            }
        }
        Ok((named, selection::sort(&rest, data)?))
    }

    fn whose(&self, data: &Data, mut named: Vec<UserName>) -> Result<Whose, Error> {
        if named.len() > 1 {
            named.extend(self.named.clone());
            return Ok(Whose::of(named));
        }
        Ok(Whose::of(self.user_named(data, named.first())?))
    }

    /// The one job that a request is about.
    pub fn one_job(&self, words: &[String], purpose: Purpose) -> Result<JobId, Error> {
        let data = self.ctx.data()?;
        self.one_job_of(&data, selection::sort(words, &data)?, purpose)
    }

    /// The one job that is called by words of which the request has taken what else they hold.
    pub fn one_job_of(
        &self,
        data: &Data,
        mut sorted: Sorted,
        purpose: Purpose,
    ) -> Result<JobId, Error> {
        sorted.no_selector()?;
        sorted.no_pair()?;
        let words = sorted.take_jobs(data)?;
        self.one_of(data, (sorted.user, &words), purpose)
    }

    /// The same, where a number may be that of a window of which there is no record.
    pub fn one_number_of(
        &self,
        data: &Data,
        (user, words): (Option<UserName>, &[JobWord]),
        purpose: Purpose,
    ) -> Result<JobId, Error> {
        let [JobWord::Number(number)] = words else {
            return self.one_of(data, (user, words), purpose);
        };
        let owner = self.user(data, &About { word: user, purpose, jobs: words })?;
        if words.iter().any(|word| user_of(data, &owner).is_ok_and(|user| word.is_of(user))) {
            return self.one_of(data, (Some(owner), words), purpose);
        }
        Ok(JobId::new(owner, *number))
    }

    /// The one job that is called by these words, of the user who is named.
    pub fn one_of(
        &self,
        data: &Data,
        (user, words): (Option<UserName>, &[JobWord]),
        purpose: Purpose,
    ) -> Result<JobId, Error> {
        let mut jobs = match words {
            [] => match self.called_as_user(data, user.as_ref()) {
                Some((owner, word)) => return self.one_of(data, (Some(owner), &[word]), purpose),
                None => Vec::new(),
            },
            words => {
                let owner = self.owner(data, user, words, purpose)?;
                let of = user_of(data, &owner)?;
                let words: Vec<JobWord> = words.iter().map(|word| word.of_one(of)).collect();
                let (one, group) = attempts(data, &owner, &words, purpose)?;
                if let (Some(first), [word]) = (group.first(), words.as_slice()) {
                    let (member, many) = (job_of(data, first)?.member(), group.len());
                    let (what, hint) = match member {
                        Some(member) => (
                            format!("'{word}' is a group of {many} jobs"),
                            format!("name one of them, as in {member}"),
                        ),
                        None => (
                            format!("'{word}' means {many} jobs"),
                            format!("name one of them, as in {first}"),
                        ),
                    };
                    return Err(Error::usage(what).hint(hint));
                }
                one.into_iter().chain(group).collect()
            }
        };
        match (jobs.pop(), jobs.len()) {
            (Some(one), 0) => Ok(one),
            (None, _) => {
                Err(Error::usage("which job?")
                    .hint("a number or a name from `tpu check`, as in: 7"))
            }
            (Some(_), _) => Err(Error::usage("one job at a time, please")
                .hint("a number or a name from `tpu check`, as in: 7")),
        }
    }

    /// The job of whoever is at work that has the name of the user who is named, where nothing else names a job.
    fn called_as_user(&self, data: &Data, user: Option<&UserName>) -> Option<(UserName, JobWord)> {
        let word = JobWord::Name(user?.to_string());
        let owner = self.user_named(data, None).ok()??;
        let is_its = word.is_of(data.user(&owner)?) || !word.waiting(data, &owner).is_empty();
        is_its.then_some((owner, word))
    }

    /// Whose the jobs are that are called so.
    fn owner(
        &self,
        data: &Data,
        word: Option<UserName>,
        jobs: &[JobWord],
        purpose: Purpose,
    ) -> Result<UserName, Error> {
        // What nobody's job is called is most likely a slip in a user's name.
        let is_anybodys =
            |word: &&JobWord| data.users().iter().any(|user| word.is_known_of(data, user));
        let names = jobs.iter().filter(|word| !matches!(word, JobWord::Number(_)));
        if let Some(strange) = names.into_iter().find(|word| !is_anybodys(word)) {
            return Err(strange.unknown(data, None));
        }
        self.user(data, &About { word, purpose, jobs })
    }

    /// What a request for several is about: windows, selectors, or all that `applies` to; jobs, and what waits to become
    /// one.
    pub fn many(
        &self,
        words: &[String],
        several: Several,
        applies: impl Fn(&JobView) -> bool,
    ) -> Result<Meant, Error> {
        let data = self.ctx.data()?;
        let mut sorted = selection::sort(words, &data)?;
        // The original also takes a target here: all of the user's jobs on it.
        let targets = sorted.take_targets(&data);
        let mut selectors = std::mem::take(&mut sorted.selectors);
        sorted.no_pair()?;
        let mut words = sorted.take_jobs(&data)?;
        if words.is_empty()
            && !several.all
            && targets.is_empty()
            && selectors.is_empty()
            && let Some((owner, word)) = self.called_as_user(&data, sorted.user.as_ref())
        {
            (sorted.user, words) = (Some(owner), vec![word]);
        }
        let user = self.owner(&data, sorted.user, &words, several.purpose)?;
        let is_named = |word: &&String| {
            let jobs = data.user(&user).map(User::jobs).unwrap_or_default();
            jobs.iter().any(|job| job.status.is_live() && job.name() == Some(word.as_str()))
                || !JobWord::Name((*word).clone()).waiting(&data, &user).is_empty()
        };
        if let Some(both) = targets.iter().find(is_named) {
            let what = format!("'{both}' is a target and the name of a job of {user}");
            return Err(Error::usage(what).hint(format!("tpu:{both} or name:{both}")));
        }
        selectors.extend(targets.into_iter().map(Selector::Target));

        let owner = user_of(&data, &user)?;
        words = words.into_iter().flat_map(|word| word.one_by_one(&data, owner)).collect();
        let waits = words.iter().flat_map(|word| word.waiting(&data, &user));
        let mut waiting: Vec<WaitingCalled> = Vec::new();
        for called in waits {
            if !waiting.contains(&called) {
                waiting.push(called);
            }
        }
        let mut begun = Vec::new();
        for word in words {
            if !word.only_waits(&data, owner)? {
                begun.push(word);
            }
        }
        let (mut jobs, group) = attempts(&data, &user, &begun, Purpose::Look)?;
        if !group.is_empty() {
            jobs.extend(self.members(&data, group, &applies)?);
        }
        if several.all || !selectors.is_empty() {
            // A status that is named is meant, whatever the request takes otherwise.
            let by_status =
                selectors.iter().any(|selector| matches!(selector, Selector::Status(_)));
            let selected = self.selected(&data, &user, &selectors)?.into_iter();
            let (queued, records): (Vec<JobView>, Vec<JobView>) =
                selected.filter(|view| by_status || applies(view)).partition(JobView::is_queued);
            let mut known: HashSet<JobId> = jobs.iter().cloned().collect();
            jobs.extend(
                records.into_iter().map(|view| view.id).filter(|id| known.insert(id.clone())),
            );
            let mut known: HashSet<JobId> = waiting.iter().map(|it| it.id.clone()).collect();
            let queued =
                queued.into_iter().map(|view| view.id).filter(|id| known.insert(id.clone()));
            waiting.extend(queued.map(|id| WaitingCalled { id, members: None }));
            if jobs.is_empty() && waiting.is_empty() {
                return Err(Error::not_found(format!("no job of {user} is meant by that"))
                    .hint(format!("`tpu check {user}` lists them")));
            }
        }
        if jobs.is_empty() && waiting.is_empty() {
            return Err(Error::usage("which jobs?").hint(
                "numbers (7, w=7, 7,9-12), names, tag:NAME, tpu:NAME, status:NAME, or --all",
            ));
        }
        Ok(Meant { jobs, waiting })
    }

    /// The jobs that are called by the one word that is left when the request has taken what else there is: of a
    /// group that is called as a whole those to which the request applies.
    pub fn all_jobs_of(
        &self,
        data: &Data,
        mut sorted: Sorted,
        applies: impl Fn(&JobView) -> bool,
    ) -> Result<Vec<JobId>, Error> {
        sorted.no_selector()?;
        sorted.no_pair()?;
        let mut words = sorted.take_jobs(data)?;
        words.dedup();
        if words.len() != 1 {
            // The same errors as where one is meant: several at once are the members of a group, or a pattern's.
            return self.one_of(data, (sorted.user, &words), Purpose::Change).map(|job| vec![job]);
        }
        let user = self.owner(data, sorted.user, &words, Purpose::Change)?;
        let (mut jobs, group) = attempts(data, &user, &words, Purpose::Change)?;
        if !group.is_empty() {
            jobs.extend(self.members(data, group, &applies)?);
        }
        Ok(jobs)
    }

    /// Those members of a group to which a request applies; all, where it applies to none: what speaks against it
    /// is then said of each.
    fn members(
        &self,
        data: &Data,
        group: Vec<JobId>,
        applies: &impl Fn(&JobView) -> bool,
    ) -> Result<Vec<JobId>, Error> {
        let Some(user) = group.first().map(|id| id.user.clone()) else { return Ok(group) };
        let views = self.selected(data, &user, &[])?.into_iter();
        let apt: HashSet<JobId> = views.filter(|view| applies(view)).map(|view| view.id).collect();
        let (fit, rest): (Vec<JobId>, Vec<JobId>) =
            group.into_iter().partition(|id| apt.contains(id));
        Ok(if fit.is_empty() { rest } else { fit })
    }

    /// The jobs of a user that every selector accepts, and what waits to become one.
    fn selected(
        &self,
        data: &Data,
        user: &UserName,
        selectors: &[Selector],
    ) -> Result<Vec<JobView>, Error> {
        let mut memory = snapshot::LookMemory::default();
        let whose = Whose::of([user.clone()]);
        let mut look = shown::look(self.ctx, &mut memory, &whose, WaitingMembers::Folded)?;
        selection::choose(data, &mut look.jobs, selectors)?;
        Ok(look.jobs)
    }
}

/// The attempts of a user that are called so, each once; by themselves those of groups that are called as a whole. What
/// waits is none: an error where nothing of the word has begun, or where it is to be changed and the word means what waits.
fn attempts(
    data: &Data,
    user: &UserName,
    words: &[JobWord],
    purpose: Purpose,
) -> Result<(Vec<JobId>, Vec<JobId>), Error> {
    let owner = user_of(data, user)?;
    let (mut jobs, mut of_groups) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for word in words {
        if let [waiting, ..] = word.waiting(data, user).as_slice()
            && (!word.is_of(owner) || purpose == Purpose::Change && word.only_waits(data, owner)?)
        {
            return Err(waits_yet(data, waiting));
        }
        let called = word.attempts(data, owner)?;
        let list = if called.is_group { &mut of_groups } else { &mut jobs };
        for window in called.attempts {
            if seen.insert(window) {
                list.push(JobId::new(user.clone(), window));
            }
        }
    }
    Ok((jobs, of_groups))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::open::for_test;

    /// A request from far away, for which nobody can be asked.
    fn requester<'a>(ctx: &'a Ctx, named: Option<&str>) -> Requester<'a> {
        Requester {
            ctx,
            named: named.map(UserName::from),
            ask: Box::new(|data| Err(unnamed(data))),
        }
    }

    #[test]
    fn a_request_needs_no_command_line_to_know_whose_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = for_test(dir.path());
        ctx.transact(|tx| {
            for name in ["alice", "bob"] {
                tx.data.add_user(&UserName::from(name));
            }
            Ok(())
        })
        .unwrap();
        let data = ctx.data().unwrap();
        let about = |word: Option<&str>| About {
            word: word.map(UserName::from),
            purpose: Purpose::Change,
            jobs: &[],
        };
        let alice = requester(&ctx, Some("alice"));
        assert_eq!(alice.user(&data, &about(None)).unwrap(), UserName::from("alice"));
        let contradiction = alice.user(&data, &about(Some("bob"))).unwrap_err();
        assert!(contradiction.message.starts_with("two users are named"), "{contradiction}");
        let nobody = requester(&ctx, None);
        assert_eq!(nobody.user(&data, &about(Some("bob"))).unwrap(), UserName::from("bob"));
        let error = nobody.user(&data, &about(None)).unwrap_err();
        assert_eq!(error.message, "whose? There are alice, bob");
        assert_eq!(nobody.users_of_list(&[]).unwrap(), Whose::default());
        let several = Several { all: true, purpose: Purpose::Change };
        let error = alice.many(&[], several, |_| true).unwrap_err();
        assert_eq!(error.message, "no job of alice is meant by that");
    }
}
