//! What waits to be started: the queues, and the entries that stand in them (`queue` in data.json).
//!
//! The original ignores this key. In `job_data` its daemon would act on records whose status it does not know, and
//! remove those without a window: so a record begins with the claim, under the number that its entry has had since it
//! was submitted.

mod file;

use super::answered::AnsweredRequest;
use super::entry::QueueEntry;
use super::ids::{JobId, QueueName, UserName};
use super::loan::Loan;
use super::making::Making;
use super::queue::Queue;
use super::task::SubmittedTask;

/// All queues, with what waits in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Those that somebody has made or said something of.
    named: Vec<Queue>,
    /// What waits, in the order in which it was submitted.
    pub entries: Vec<QueueEntry>,
    /// Targets that are being made for some of them.
    pub makings: Vec<Making>,
    /// Targets that go with the jobs for which they are made.
    pub loans: Vec<Loan>,
    /// The tasks of files that have become jobs.
    pub tasks: Vec<SubmittedTask>,
    /// Requests that were answered lately.
    pub answered: Vec<AnsweredRequest>,
}

impl Queues {
    /// What waits to continue from this attempt.
    pub fn successor_of(&self, job: &JobId) -> Option<&QueueEntry> {
        let goes_on = |entry: &&QueueEntry| {
            entry.user == job.user && entry.succeeds.is_some_and(|of| of.job == job.window)
        };
        self.entries.iter().find(goes_on)
    }

    /// The targets that are being made for an entry.
    pub fn makings_for(&self, job: &JobId) -> impl Iterator<Item = &Making> {
        self.makings.iter().filter(move |making| making.job == *job)
    }

    /// What a task of a file has become, if it was submitted.
    pub fn task(&self, file: &str, id: &str) -> Option<&SubmittedTask> {
        self.tasks.iter().find(|task| task.is(file, id))
    }

    /// The answer that a request of this sender has had, if it had one.
    pub fn answer(&self, by: &str, key: &str) -> Option<&AnsweredRequest> {
        self.answered.iter().find(|request| request.is(by, key))
    }

    /// The highest number that something of this user has which waits, is a task or was answered: it is known by that.
    pub fn highest_number(&self, user: &UserName) -> Option<u32> {
        let entries = self.entries.iter().filter(|entry| entry.user == *user);
        let tasks = self.tasks.iter().filter(|task| task.job.user == *user);
        let answered = self.answered.iter().flat_map(|request| &request.jobs);
        let answered = answered.filter(|job| job.user == *user).map(|job| job.window.0);
        let numbers = entries.map(|entry| entry.number.0);
        numbers.chain(tasks.map(|task| task.job.window.0)).chain(answered).max()
    }

    /// The queue of this name; the usual one is there even where nobody has said anything of it.
    pub fn queue(&self, name: &QueueName) -> Option<Queue> {
        let known = self.named.iter().find(|queue| queue.name == *name).cloned();
        known.or_else(|| (*name == QueueName::usual()).then(|| Queue::new(name.clone())))
    }

    /// All queues, the usual one first.
    pub fn all(&self) -> Vec<Queue> {
        let usual = QueueName::usual();
        let first = self.queue(&usual);
        let others = self.named.iter().filter(|queue| queue.name != usual).cloned();
        first.into_iter().chain(others).collect()
    }

    /// Keeps what is said of a queue, which may be new.
    pub fn set(&mut self, queue: Queue) {
        match self.named.iter_mut().find(|known| known.name == queue.name) {
            Some(known) => *known = queue,
            None => self.named.push(queue),
        }
    }

    /// Forgets a queue. Whether it was there.
    pub fn remove(&mut self, name: &QueueName) -> bool {
        let before = self.named.len();
        self.named.retain(|queue| queue.name != *name);
        self.named.len() < before
    }

    /// The entry of this number.
    pub fn entry(&self, id: &JobId) -> Option<&QueueEntry> {
        self.entries.iter().find(|entry| entry.user == id.user && entry.number == id.window)
    }

    /// The entry of this number, to be changed.
    pub fn entry_mut(&mut self, id: &JobId) -> Option<&mut QueueEntry> {
        self.entries.iter_mut().find(|entry| entry.user == id.user && entry.number == id.window)
    }

    /// Takes an entry out.
    pub fn take(&mut self, id: &JobId) -> Option<QueueEntry> {
        let at = self.entries.iter().position(|entry| entry.id() == *id)?;
        Some(self.entries.remove(at))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::arguments::ArgumentStyle;
    use crate::model::capacity::{Ask, GpuAsk, Memory};
    use crate::model::data::Data;
    use crate::model::entry::{
        After, AfterWhich, Awaited, Environment, Keeper, Passed, Priority, QueueHold, Shunned,
    };
    use crate::model::execution::{Copying, Execution};
    use crate::model::facts::ErrorKind;
    use crate::model::ids::{JobNumber, TargetName};
    use crate::model::job::Succession;
    use crate::model::member::{Array, Member};
    use crate::model::notify::{Receiver, WayTo};
    use crate::model::policy::Policy;
    use crate::model::queue::{QueuePolicy, QueueState};
    use crate::model::read::Path;
    use crate::model::repeat::{Repeat, RepeatWhen};
    use crate::model::retry::Retry;
    use crate::model::setup::{Docker, Module, SetUpHow};
    use crate::model::spec::{AnyOf, CodeDir, JobSpec, Staged, TargetRequest};
    use crate::model::sweep::Sweep;
    use crate::model::target_limit::TargetLimit;
    use crate::model::time::Timestamp;
    use crate::model::walk::Walk;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_161_700 + second)
    }

    /// One with which nothing is but what must be.
    fn entry(number: u32, target: TargetRequest, env: &Environment) -> QueueEntry {
        QueueEntry {
            user: UserName::from("alice"),
            number: JobNumber(number),
            queue: QueueName::usual(),
            spec: JobSpec { queue: Some(QueueName::usual()), ..JobSpec::on(target) },
            force: false,
            env: env.clone(),
            since: at(0),
            priority: Priority::default(),
            rank: 0,
            held: None,
            after: Vec::new(),
            passed: Passed::default(),
            place: String::new(),
            keeper: None,
            succeeds: None,
            applies: false,
            shunned: Vec::new(),
            sweep: None,
        }
    }

    fn named(name: &str) -> TargetRequest {
        TargetRequest::Named(name.to_owned())
    }

    fn any(reclaimable: Option<bool>) -> TargetRequest {
        TargetRequest::Any(AnyOf { reclaimable, ..AnyOf::default() })
    }

    /// With every member of an entry and of its specification other than usual. Which target was chosen, and why, is
    /// said when it begins.
    fn full(number: u32) -> QueueEntry {
        let queue = QueueName::from("night");
        let target = TargetRequest::Any(AnyOf {
            types: vec!["v2".to_owned(), "v3+".to_owned()],
            among: vec!["gpu[1-2]".to_owned()],
            policy: Some(Policy::Frugal),
            reclaimable: Some(true),
            zones: vec!["us-east5-b".to_owned()],
            order: Some("cheapest first".to_owned()),
        });
        let spec = JobSpec {
            name: Some("z0".to_owned()),
            array: Some(Array::parse("0-3,7%2").unwrap()),
            member: Some(Member { group: JobNumber(12), index: 3 }),
            target,
            chosen: None,
            dir: Some(2),
            code: Some(CodeDir { top: "/exp".to_owned(), below: Some("sub".to_owned()) }),
            configs: vec![("lr".to_owned(), "0.1 = x".to_owned())],
            words: vec!["--fast".to_owned(), String::new()],
            command: Some(vec!["python".into(), OsString::from_vec(b"a\xffb".to_vec())]),
            tag: Some("sweep".to_owned()),
            notes: Some("naïve \"one\"\n".to_owned()),
            rules: Some("pre".to_owned()),
            monitor: false,
            log_stage: true,
            arguments: Some(ArgumentStyle::Hydra),
            ask: Ask { gpus: GpuAsk::Count(2), cpus: Some(8), memory: Some(Memory(1536)) },
            options: [("time", "1:00"), ("gres", "a"), ("gres", "b")].into_iter().collect(),
            queue: Some(queue.clone()),
            staged: Some(Staged { from: "/code".to_owned(), copy: "/stage/12".to_owned() }),
            execution: Execution {
                variables: vec![("HF_HOME".to_owned(), "/hf".to_owned())],
                secrets: vec!["WANDB_API_KEY".to_owned()],
                setup: vec![
                    Module::Recipe("mount-disk".to_owned()),
                    Module::Docker(Docker { image: "r/i".to_owned(), ..Docker::default() }),
                ],
                setup_how: SetUpHow::Force,
                workplace: Some("/data/train".to_owned()),
                output: Some("~/o.txt".to_owned()),
                workers: Some(vec![0, 2]),
                timeout_s: Some(86_400),
                idle_timeout_s: Some(1_800),
                repeat: Some(Repeat { when: RepeatWhen::OnFailure, pause_s: 5 }),
                retry: Some(Retry { max: 3, on: vec![ErrorKind::Lost], backoff_s: Some(60) }),
                notify: Some(vec![Receiver::of(WayTo::Mail("a@b.c".to_owned()))]),
                copying: Copying::KnownWithLinks,
                outputs: vec!["runs".to_owned()],
                copies_each: true,
                resume_args: Some("--resume {checkpoint}".to_owned()),
                checkpoint_dir: Some("out".to_owned()),
                submitted_by: Some("bob".to_owned()),
                only_on: TargetLimit::parse("v4-*").unwrap(),
            },
        };
        let after = |which, number, member, met: Option<&str>| After {
            met: met.map(|met| Array::parse(met).unwrap()),
            which,
            job: JobId::new(UserName::from("bob"), JobNumber(number)),
            member,
        };
        QueueEntry {
            user: UserName::from("alice"),
            number: JobNumber(number),
            queue,
            spec,
            force: true,
            env: vec!["PATH=/bin".into(), OsString::from_vec(b"ODD=\xfe".to_vec())].into(),
            since: at(1),
            priority: Priority::parse("100").unwrap(),
            rank: -7,
            held: Some(QueueHold {
                by: "bob".to_owned(),
                since: at(2),
                why: Some("later".to_owned()),
                needs_login: false,
            }),
            after: vec![
                after(AfterWhich::Ok, 3, None, None),
                after(AfterWhich::Any, 4, Some(0), None),
                after(AfterWhich::Not, 5, Some(7), None),
                after(AfterWhich::Each, 6, None, None),
                after(AfterWhich::Each, 7, None, Some("0-3,7")),
            ],
            passed: Passed { times: 9, since: Some(at(3)) },
            place: "5eed".to_owned(),
            keeper: Some(Keeper { owner: "host:boot:1:2".to_owned(), seen: at(4) }),
            succeeds: Some(Awaited { job: JobNumber(3), how: Succession::Resume, is_told: true }),
            applies: true,
            shunned: vec![Shunned {
                target: TargetName::from("gpu1"),
                until: at(9),
                why: "ssh: refused".to_owned(),
            }],
            sweep: Sweep::take(&mut vec![("lr".to_owned(), "1,2".to_owned())], false).ok(),
        }
    }

    fn written(queues: &Queues) -> String {
        queues.write().to_string()
    }

    fn read(text: &str) -> Queues {
        let read = Queues::read(&mut Walk::document(text, 0), &Path::Root);
        read.unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    #[test]
    fn queues_read_back_as_they_were_written() {
        let mut queues = Queues::default();
        assert_eq!(read(&written(&queues)), queues, "nothing");
        assert_eq!(read("{}"), queues, "no members");
        queues.set(Queue::new(QueueName::from("plain")));
        queues.set(Queue {
            name: QueueName::from("night"),
            policy: QueuePolicy::Fifo,
            max_parallel: Some(3),
            on: vec!["gpu1".to_owned(), "v4+".to_owned()],
            state: QueueState::Paused,
        });
        let usual = QueueName::usual();
        queues.set(Queue { state: QueueState::Draining, ..Queue::new(usual) });
        let env = Environment::default();
        queues.entries = vec![full(12), entry(13, named("gpu1"), &env), full(14)];
        queues.entries.extend([None, Some(false), Some(true)].map(|it| entry(15, any(it), &env)));
        let of_these = Ask { gpus: GpuAsk::These(vec![0, 2]), ..Ask::default() };
        let mut last = entry(16, named("gpu1"), &env);
        last.spec = JobSpec { ask: of_these, dir: None, ..last.spec };
        last.priority = Priority::parse("0").unwrap();
        last.held =
            Some(QueueHold { by: "tpu".to_owned(), since: at(5), why: None, needs_login: true });
        queues.entries.push(last);
        let job = |number| JobId::new(UserName::from("alice"), JobNumber(number));
        queues.answered.push(AnsweredRequest {
            by: "token a".to_owned(),
            key: "k".to_owned(),
            said: "0f".to_owned(),
            at: at(7),
            jobs: vec![job(12), job(13)],
        });
        assert_eq!(queues.highest_number(&UserName::from("alice")), Some(16));
        queues.answered[0].jobs.push(job(40));
        assert_eq!(queues.highest_number(&UserName::from("alice")), Some(40));
        let text = written(&queues);
        assert_eq!(read(&text), queues, "{text}");
        assert_eq!(written(&read(&text)), text);
    }

    #[test]
    fn a_document_keeps_its_queues_and_without_a_change_its_bytes() {
        let mut data = Data::empty();
        assert!(data.add_user(&UserName::from("alice")));
        let before = data.to_text();
        assert_eq!(Data::parse(before.as_bytes()).unwrap().to_text(), before);
        assert!(!before.contains("\"queue\"") && !before.contains("\"waiting\""), "{before}");
        data.queues_mut().set(Queue::new(QueueName::from("night")));
        data.queues_mut().entries = vec![full(12), full(13)];
        let text = data.to_text();
        let again = Data::parse(text.as_bytes()).unwrap();
        assert_eq!(again.queues(), data.queues());
        assert_eq!(again.to_text(), text);
        assert!(!text.contains("\"waiting\""), "{text}");

        // By hand, and by a version that says more: what is usual may be said, and nothing is taken for a change.
        let odd =
            text.replacen("\"since\"", "\"said_later\": [1e-05],  \"force\" :true, \"since\"", 1);
        assert_ne!(odd, text);
        assert_eq!(Data::parse(odd.as_bytes()).unwrap().to_text(), odd);
        let mut data = Data::parse(b"{\"users\":{},\"waiting\" : [ ]}\n").unwrap();
        assert_eq!(data.to_text(), "{\"users\":{},\"waiting\" : [ ]}\n");
        data.queues_mut().set(Queue::new(QueueName::from("night")));
        assert!(data.queues_mut().remove(&QueueName::from("night")));
        assert_eq!(data.to_text(), "{\"users\":{},\"waiting\" : [ ]}\n", "there and back");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let whole = r#"{"queues":[{"name":"n"}],"entries":[{"user":"a","number":1,"since":
            "2026-11-20T14:02:11Z","target":"t","priority":50,"after":["ok:a/1"],"array":"0-3"}]}"#;
        assert_eq!(read(whole).entries.len(), 1);
        let odd = [
            ("\"user\":\"a\",", "", "entries[0].user"),
            ("\"number\":1", "\"number\":-1", "entries[0].number"),
            ("2026-11-20T14:02:11Z", "today", "entries[0].since"),
            ("\"priority\":50", "\"priority\":101", "entries[0].priority"),
            ("ok:a/1", "ok:a", "entries[0].after[0]"),
            ("0-3", "3-0", "entries[0].array"),
            ("\"name\":\"n\"", "\"policy\":\"fifo\"", "queues[0].name"),
            ("\"name\":\"n\"", "\"name\":\"n\",\"state\":\"shut\"", "queues[0].state"),
        ];
        for (was, is, place) in odd {
            let text = whole.replace(was, is);
            assert_ne!(text, whole);
            let walk = &mut Walk::document(&text, 0);
            let error = Queues::read(walk, &Path::Root).unwrap_err().to_string();
            assert!(error.contains(place), "{error}");
        }
        // Whose environment is not there begins with none, and keeps nobody else from being read.
        let text = whole.replace("\"number\":1", "\"number\":1,\"env\":7");
        assert_eq!(read(&text).entries[0].env, Environment::default());
        // Whoever edits the file may put the environments behind the entries.
        let text = text.replace("\"env\":7", "\"env\":1");
        let text = text.replace("\"0-3\"}]}", "\"0-3\"}],\"environments\":[[],[\"A=b\"]]}");
        assert_eq!(read(&text).entries[0].env, Environment::from(vec![OsString::from("A=b")]));
    }

    /// Three who waited in line before there was a queue, one of them with nothing written down to be started.
    const LINE: &str = r#"{
    "users": {
        "alice": {"id": 0, "windows_offset": 7, "job_data": []},
        "bob": {"id": 1, "windows_offset": 1, "job_data": []}
    },
    "waiting": [
        {"types": ["v2", "v3+"], "reclaimable": false, "id": "1f", "user": "alice", "owner": "h:b:1:2",
         "since": "2026-11-20T14:02:11Z", "seen": "2026-11-20T14:03:11Z", "place": "5eed",
         "run": {"dir": 2, "configs": [["lr", "0.1"]], "words": [], "tag": null, "rule": "pre", "monitor": true,
                 "notes": null, "log_stage": false, "command": ["python", {"b64": "Yf9i"}], "force": true,
                 "env": ["PATH=/bin"]}},
        {"types": ["v4"], "reclaimable": null, "id": "2a", "user": "bob", "owner": "h:b:3:4",
         "since": "2026-11-20T14:02:12Z", "place": "5eed", "run": null},
        {"types": [], "reclaimable": null, "among": ["gpu[1-2]"], "policy": "frugal", "id": "2b", "user": "bob",
         "owner": "h:b:5:6", "since": "2026-11-20T14:02:13Z", "place": "5eed", "run": {"dir": 1}},
        {"types": ["v4"], "reclaimable": null, "id": "3c", "user": "alice", "owner": "h:b:7:8",
         "since": "2026-11-20T14:02:14Z", "place": "", "run": {"dir": null}},
        {"types": ["v4"], "reclaimable": null, "id": "4d", "user": "gone", "owner": "h:b:9:9",
         "since": "2026-11-20T14:02:15Z", "place": "", "run": {"dir": 1}}
    ]
}
"#;

    #[test]
    fn who_waited_in_line_stands_in_the_queue_with_a_number() {
        let data = Data::parse(LINE.as_bytes()).unwrap();
        let entries = &data.queues().entries;
        let ids: Vec<String> = entries.iter().map(|entry| entry.id().to_string()).collect();
        assert_eq!(ids, ["alice/7", "bob/1", "alice/8"]);
        let again = Data::parse(LINE.as_bytes()).unwrap();
        assert_eq!(again.queues(), data.queues(), "whoever reads it gives them these numbers");

        let second = |text: &str| Timestamp::parse_rfc3339(text).unwrap();
        let any_of = AnyOf {
            types: vec!["v2".to_owned(), "v3+".to_owned()],
            reclaimable: Some(false),
            ..AnyOf::default()
        };
        let env: Environment = vec![OsString::from("PATH=/bin")].into();
        let first = entry(7, TargetRequest::Any(any_of), &env);
        let spec = JobSpec {
            dir: Some(2),
            configs: vec![("lr".to_owned(), "0.1".to_owned())],
            rules: Some("pre".to_owned()),
            command: Some(vec!["python".into(), OsString::from_vec(b"a\xffb".to_vec())]),
            ..first.spec.clone()
        };
        let keeper = |owner: &str, seen| Keeper { owner: owner.to_owned(), seen: second(seen) };
        let expected = QueueEntry {
            spec,
            force: true,
            since: second("2026-11-20T14:02:11Z"),
            place: "5eed".to_owned(),
            keeper: Some(keeper("h:b:1:2", "2026-11-20T14:03:11Z")),
            ..first
        };
        assert_eq!(entries[0], expected);
        assert_eq!(entries[1].keeper, Some(keeper("h:b:5:6", "2026-11-20T14:02:13Z")));
        let TargetRequest::Any(any_of) = &entries[1].spec.target else { panic!("{entries:?}") };
        assert_eq!(
            (any_of.among.as_slice(), any_of.policy),
            (&["gpu[1-2]".to_owned()][..], Some(Policy::Frugal))
        );
    }

    #[test]
    fn whoever_changes_the_document_writes_the_numbers_down() {
        let mut data = Data::parse(LINE.as_bytes()).unwrap();
        let queues = data.queues().clone();
        let alice = UserName::from("alice");
        assert_eq!(data.next_number(&alice, None), Some(JobNumber(9)), "no number is given twice");
        data.set_ack(true);
        let text = data.to_text();
        let value = data.to_value();
        assert_eq!(value["waiting"], json!([]));
        assert_eq!(value["queue"]["entries"].as_array().map(Vec::len), Some(3));
        assert_eq!(value["users"]["alice"]["windows_offset"], json!(10));
        assert_eq!(value["users"]["bob"]["windows_offset"], json!(2));
        let again = Data::parse(text.as_bytes()).unwrap();
        assert_eq!(*again.queues(), queues);
        assert_eq!(again.to_text(), text);

        // Where the count was set back what waits keeps its numbers.
        let mut back = again.clone();
        back.user_mut(&alice).unwrap().windows_offset = 1;
        assert_eq!(back.next_number(&alice, None), Some(JobNumber(9)));

        // A version that knows only the line stood somebody in it meanwhile: behind those who have numbers.
        let late = LINE.replace("14:02:11Z", "14:09:11Z");
        let late: Value = serde_json::from_str(&late).unwrap();
        let mut both = value;
        both["waiting"] = json!([late["waiting"][0]]);
        let both = again.replaced(&both).unwrap();
        let ids: Vec<String> = both.queues().entries.iter().map(|e| e.id().to_string()).collect();
        assert_eq!(ids, ["alice/7", "bob/1", "alice/8", "alice/10"]);
    }

    #[test]
    fn an_environment_of_many_stands_in_the_file_once() {
        let words = |text: &str| -> Environment { vec![OsString::from(text)].into() };
        let (one, same, other) = (words("A=1"), words("A=1"), words("A=2"));
        let of = |number, env| entry(number, named("gpu1"), env);
        let entries = vec![of(1, &one), of(2, &same), of(3, &other), of(4, &one)];
        let queues = Queues { entries, ..Queues::default() };
        let value = queues.write();
        assert_eq!(value["environments"], json!([["A=1"], ["A=2"]]));
        let again = read(&value.to_string());
        assert_eq!(again, queues);
        let env = |at: usize| &again.entries[at].env;
        assert!(Arc::ptr_eq(env(0), env(1)) && Arc::ptr_eq(env(0), env(3)));
        assert!(!Arc::ptr_eq(env(0), env(2)));
    }

    // slow: ten thousand entries are written and read.
    #[test]
    fn a_long_queue_is_a_small_file() {
        let env: Environment = (0..30)
            .map(|at| OsString::from(format!("CONDA_{at}={}", "/home/alice/miniforge3".repeat(5))))
            .collect();
        let job = |number: u32, array: Option<&str>| {
            let mut new = entry(number, any(None), &env);
            new.place = "5eed5eed5eed5eed".to_owned();
            new.spec.staged = Some(Staged {
                from: "/home/alice/work/imagenet".to_owned(),
                copy: format!("/home/alice/staging/20261120_140211-{number:08}"),
            });
            new.spec.array = array.map(|array| Array::parse(array).unwrap());
            new.spec.name = Some(format!("imagenet-{number}"));
            new.spec.configs = (0..4)
                .map(|key| (format!("config.training.rate_{key}"), format!("0.000{number}")))
                .collect();
            new
        };
        let size = |entries: Vec<QueueEntry>| {
            let mut data = Data::empty();
            assert!(data.add_user(&UserName::from("alice")));
            *data.queues_mut() = Queues { entries, ..Queues::default() };
            let text = data.to_text();
            assert_eq!(Data::parse(text.as_bytes()).unwrap().queues(), data.queues());
            text.len()
        };
        let single = size((1..=10_000).map(|number| job(number, None)).collect());
        assert!(single < 10_000_000, "{single} bytes");
        // Every other one has begun: what is left of a group is longest then.
        let rest: Vec<String> =
            (0..2000).step_by(2).map(|member: u32| member.to_string()).collect();
        let arrays = [Some("0-999%8"), Some(&*rest.join(","))];
        let groups =
            size((1..=10).map(|number| job(number, arrays[number as usize % 2])).collect());
        assert!(groups < 1_000_000, "{groups} bytes");
    }
}
