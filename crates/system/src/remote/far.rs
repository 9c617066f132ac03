//! Workers that another program reaches, which runs a command there: all that is done over such a
//! connection, whatever it is. The worker's part is `assets/door.sh`.
//!
//! A connection proves nothing by its exit code: gcloud answers 0 for commands that failed, and runs a
//! command again when the connection breaks (reference/gcloud.md §2.8). So each answer of the door is said
//! in words, what is missing is unknown, and a start is one for each launch token however often it arrives.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use crate::sys::proc::{self, ProcessStatus, Spawn};
use crate::sys::talk::Stdin;
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::login;

use super::command::{self, ANSWER, Told, last_line, said_at_the_end};
use super::each::{Place, on_each};
use super::lines::Lines;
use super::streams::{Ear, Streams, lost};
use super::{
    Ask, End, Other, Output, PerWorker, Remote, RemoteError, Replies, Reply, Running, Started,
    Stopped, Stream, Upload, WRAPPER, Work, Worker, checked, joined, nul_ended,
};

/// How long the door may take for an answer: a stop takes up to 18 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kind of connection.
pub(super) trait Way: Send + Sync + 'static {
    /// Makes sure that the worker can be reached, as far as that can be done beforehand.
    fn reach(&self, worker: &Worker) -> Result<(), RemoteError>;

    /// The program that runs a shell command there, with its own standard input and outputs.
    fn spawn(&self, worker: &Worker, command: &str) -> Spawn;

    /// Waits until one more program may begin, where they are many and heavy. The place is given back when
    /// its connection stands.
    fn enter(&self) -> Option<Place<'_>> {
        None
    }

    /// Whether the program is about to run the command again, by what it says.
    fn is_trying_again(&self, _complaint: &[u8]) -> bool {
        false
    }

    /// The program that a person types into there: a shell, or a command.
    fn terminal(&self, worker: &Worker, command: Option<&str>) -> Spawn;

    /// Why the connection failed, from what the program said on standard error.
    fn reason(&self, complaint: &[u8]) -> String {
        let line = last_line(complaint).unwrap_or_else(|| "the connection broke".to_owned());
        login::with_remedy(line.clone(), &line)
    }
}

/// Workers behind connections of one kind.
pub(super) struct FarRemote<W> {
    pub(super) way: Arc<W>,
}

impl<W> Clone for FarRemote<W> {
    fn clone(&self) -> Self {
        Self { way: Arc::clone(&self.way) }
    }
}

impl<W: Way> FarRemote<W> {
    fn unreachable(&self, worker: &Worker, complaint: &[u8]) -> RemoteError {
        RemoteError::Unreachable {
            worker: worker.index,
            address: worker.address.clone(),
            reason: self.way.reason(complaint),
        }
    }

    /// Asks the door for something; its answers. None at all is no answer.
    fn answers(
        &self,
        worker: &Worker,
        asked: (&str, &str),
        args: &[String],
        payload: &[u8],
    ) -> Result<Vec<String>, RemoteError> {
        self.way.reach(worker).map_err(RemoteError::before_asking)?;
        let (command, input) = command::door(worker, asked, args, payload);
        let spawn = self.way.spawn(worker, &command).stdin(input).timeout(PATIENCE).own_group();
        let _place = self.way.enter();
        let output = proc::run(&spawn)
            .map_err(|source| RemoteError::Program { worker: worker.index, source })?;
        let text = output.text();
        let answers: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix(ANSWER)).map(str::to_owned).collect();
        if answers.is_empty() {
            return Err(self.unreachable(worker, &output.stderr));
        }
        Ok(answers)
    }

    /// A list of answers with its end: one that breaks off says nothing of what it leaves out.
    fn whole_answer(
        &self,
        worker: &Worker,
        verb: &str,
        args: &[String],
    ) -> Result<Vec<String>, RemoteError> {
        let answers = self.answers(worker, (verb, "-"), args, b"")?;
        match answers.last().map(String::as_str) {
            Some("done") => Ok(answers),
            Some(failed) if failed.starts_with("failed ") => {
                Err(self.unreachable(worker, failed.as_bytes()))
            }
            _ => Err(self.unreachable(worker, b"it did not say everything")),
        }
    }

    fn start_one(
        &self,
        worker: &Worker,
        work: &Work,
        token: &LaunchToken,
    ) -> Result<Started, RemoteError> {
        let token = checked(token)?;
        if work.argv.is_empty() {
            return Err(RemoteError::Request { what: "there is no command to start".to_owned() });
        }
        let argv = nul_ended(work.argv.iter().map(|word| word.as_bytes().to_vec()))?;
        let env = nul_ended(work.env.iter().map(|(name, value)| joined(name, value)))?;
        let dir = work.dir.iter().map(|dir| dir.as_os_str().as_bytes().to_vec());
        let dir = nul_ended(dir)?;
        let length = |bytes: &[u8]| bytes.len().to_string();
        let dir_length = if work.dir.is_some() { length(&dir) } else { "-".to_owned() };
        let secrets = nul_ended(work.secrets.0.iter().map(|(name, value)| joined(name, value)))?;
        let wrapper = WRAPPER.as_bytes();
        let args = [length(wrapper), length(&argv), length(&env), dir_length, length(&secrets)];
        let payload = [wrapper, &argv, &env, &dir, &secrets, b"end\n"].concat();
        let answers = self.answers(worker, ("start", token), &args, &payload)?;
        match answers.first().map(String::as_str) {
            Some("started") => Ok(Started::New),
            Some("already") => Ok(Started::Already),
            Some(other) => {
                let other = other.strip_prefix("refused ").unwrap_or(other);
                Err(self.unreachable(worker, other.as_bytes()))
            }
            None => Err(self.unreachable(worker, b"")),
        }
    }

    fn hear(&self, worker: &Worker, token: &LaunchToken, from: u64, ear: &Ear<Output>) -> End {
        let token = match checked(token) {
            Ok(token) => token,
            Err(error) => return lost(&error),
        };
        if let Err(error) = self.way.reach(worker) {
            return lost(&error);
        }
        let (command, input) = command::door(worker, ("follow", token), &[from.to_string()], b"");
        let spawn = self.way.spawn(worker, &command).stdin(input).own_group();
        let mut place = self.way.enter();
        let program = match ear.begin(&spawn, Stdin::Stays) {
            Ok(Some(program)) => program,
            Ok(None) => return End::Lost("nobody listens".to_owned()),
            Err(error) => return lost(&error),
        };
        let mut lines = Lines::from(from);
        let take = |bytes: &[u8]| {
            let mut said = Vec::new();
            lines.take(bytes, &mut said);
            ear.say(said)
        };
        let over = program.hear(take, |complaint, _| {
            if place.is_some() && command::has_begun(complaint) {
                place = None;
            }
            !self.way.is_trying_again(complaint)
        });
        let end = said_at_the_end(&over.complaint);
        // The rest of a line that a broken connection cut off is heard again from its beginning.
        if end.is_some() {
            let mut said = Vec::new();
            lines.end(&mut said);
            ear.say(said);
        }
        end.unwrap_or_else(|| End::Lost(self.way.reason(&over.complaint)))
    }

    fn answer(&self, worker: &Worker, ask: &Ask, ear: &Ear<Reply>) -> End {
        if let Err(error) = self.way.reach(worker) {
            return lost(&error);
        }
        let (command, mut told) = Told::of(worker, ask);
        let mut spawn = self.way.spawn(worker, &command);
        spawn.stdin.clone_from(&ask.input);
        let mut place = self.way.enter();
        let program = match ear.begin(&spawn, Stdin::Ends) {
            Ok(Some(program)) => program,
            Ok(None) => return End::Lost("nobody listens".to_owned()),
            Err(error) => return lost(&error),
        };
        let own = |line| {
            let line = told.hear(line);
            if told.has_begun {
                place = None;
            }
            line
        };
        let over = program.reply_until(|bytes| self.way.is_trying_again(bytes), own, ear);
        match (told.exit, over.status) {
            // 255 is a connection that broke: what the command said last may not have come through.
            (Some(code), Some(ProcessStatus::Code(ended))) if ended != 255 => End::Exit(code),
            _ => End::Lost(self.way.reason(&over.complaint)),
        }
    }
}

/// `run TOKEN EXIT|- PID...`.
fn running(line: &str) -> Option<Running> {
    let mut words = line.strip_prefix("run ")?.split(' ');
    Some(Running {
        token: LaunchToken::new(words.next()?),
        exit: words.next()?.parse().ok(),
        processes: {
            let mut pids: Vec<u32> = words.filter_map(|pid| pid.parse().ok()).collect();
            pids.sort_unstable();
            pids
        },
    })
}

/// `other PID START USER SECONDS COMMAND`.
fn other(line: &str) -> Option<Other> {
    let mut words = line.strip_prefix("other ")?.splitn(3, ' ');
    let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let rest = words.next().unwrap_or_default().trim_start();
    let (user, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let rest = rest.trim_start();
    let (age_s, command) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Other {
        pid,
        start,
        user: user.to_owned(),
        age_s: age_s.parse().unwrap_or_default(),
        command: command.to_owned(),
    })
}

/// `stopped COUNT`, or what could not be stopped.
fn stopped(worker: &Worker, answers: &[String]) -> Result<usize, RemoteError> {
    let failed = |what: String| Err(RemoteError::Unstoppable { worker: worker.index, what });
    let Some(last) = answers.last() else { return failed("it did not say whether".to_owned()) };
    if let Some(count) = last.strip_prefix("stopped ") {
        return Ok(count.parse().unwrap_or_default());
    }
    match last.split_once(' ') {
        Some(("stuck", pids)) => {
            failed(format!("processes {pids} do not end, not even by SIGKILL"))
        }
        Some(("denied", pid)) => failed(format!("process {pid} may not be signalled")),
        _ => failed(last.clone()),
    }
}

impl<W: Way> Remote for FarRemote<W> {
    fn start(&self, workers: &[Worker], work: &Work, token: &LaunchToken) -> PerWorker<Started> {
        on_each(workers, |worker| self.start_one(worker, work, token))
    }

    fn follow(&self, workers: &[Worker], token: &LaunchToken, from: &BTreeMap<u32, u64>) -> Stream {
        let (remote, token, from) = (self.clone(), token.clone(), from.clone());
        Box::new(Streams::begin(workers, move |worker, ear| {
            let offset = from.get(&worker.index).copied().unwrap_or(0);
            let end = remote.hear(worker, &token, offset, ear);
            ear.say(vec![Output::End(end)]);
        }))
    }

    fn stop(&self, workers: &[Worker], token: &LaunchToken) -> PerWorker<Stopped> {
        on_each(workers, |worker| {
            let answers = self.answers(worker, ("stop", checked(token)?), &[], b"")?;
            Ok(match stopped(worker, &answers)? {
                0 => Stopped::NotRunning,
                count => Stopped::Ended(count),
            })
        })
    }

    fn probe(&self, workers: &[Worker]) -> PerWorker<Vec<Running>> {
        on_each(workers, |worker| {
            let answers = self.whole_answer(worker, "probe", &[])?;
            let mut found: Vec<Running> = answers.iter().filter_map(|line| running(line)).collect();
            found.sort_unstable_by(|a, b| a.token.cmp(&b.token));
            Ok(found)
        })
    }

    fn ask(&self, workers: &[Worker], ask: &Ask) -> Replies {
        let (remote, ask) = (self.clone(), Arc::new(ask.clone()));
        Box::new(Streams::begin(workers, move |worker, ear| {
            let end = remote.answer(worker, &ask, ear);
            ear.say(vec![Reply::End(end)]);
        }))
    }

    fn put(&self, workers: &[Worker], upload: &Upload) -> PerWorker<()> {
        on_each(workers, |worker| {
            let path = nul_ended(std::iter::once(upload.path.as_bytes().to_vec()))?;
            let args = [upload.bytes.len().to_string(), format!("{:o}", upload.mode)];
            let payload = [&path, &upload.bytes[..]].concat();
            let answers = self.answers(worker, ("put", "-"), &args, &payload)?;
            match answers.first().map(String::as_str) {
                Some("kept") => Ok(()),
                _ => Err(self.unreachable(worker, b"it did not say that the file is kept")),
            }
        })
    }

    fn others(&self, workers: &[Worker], devices: &[String]) -> PerWorker<Vec<Other>> {
        on_each(workers, |worker| {
            let answers = self.whole_answer(worker, "others", devices)?;
            Ok(answers.iter().filter_map(|line| other(line)).collect())
        })
    }

    fn end(&self, worker: &Worker, others: &[Other]) -> Result<usize, RemoteError> {
        let names: Vec<String> =
            others.iter().map(|other| format!("{}.{}", other.pid, other.start)).collect();
        let answers = self.answers(worker, ("end", "-"), &names, b"")?;
        stopped(worker, &answers)
    }

    fn terminal(&self, worker: &Worker, command: Option<&str>) -> Option<Spawn> {
        let command = command.map(command::for_bash);
        Some(self.way.terminal(worker, command.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_door_are_read() {
        let found = running("run t1 - 12 7").unwrap();
        assert_eq!((found.token.as_str(), found.exit), ("t1", None));
        assert_eq!(found.processes, [7, 12]);
        assert_eq!(running("run t1 137").unwrap().exit, Some(137));
        assert_eq!(running("done"), None);
        let found = other("other 7 99 bob                 61 python3 train.py  x").unwrap();
        assert_eq!((found.pid, found.start, found.age_s), (7, 99, 61));
        assert_eq!((found.user.as_str(), found.command.as_str()), ("bob", "python3 train.py  x"));
    }

    #[test]
    fn what_cannot_be_stopped_is_said() {
        let worker = Worker { index: 3, address: "h".to_owned() };
        let said = |line: &str| stopped(&worker, &[line.to_owned()]).map_err(|e| e.to_string());
        assert_eq!(said("stopped 4"), Ok(4));
        assert!(said("stuck 1 2").unwrap_err().contains("worker 3: processes 1 2 do not end"));
        assert!(said("denied 9").unwrap_err().contains("process 9 may not be signalled"));
    }
}
