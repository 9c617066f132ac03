//! A door to workers, and what tests do through it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tpu_core::model::ids::LaunchToken;
use tpu_system::remote::gcloud::{self, GcloudConfig};
use tpu_system::remote::{
    Ask, End, Output, Remote, RemoteError, Reply, Started, Stream, Work, Worker,
};
use tpu_system::sys::procs::Process;

/// A command that a test waits for, and that waits for the test: it goes on when the file `go` is there.
pub(crate) const UNTIL_GO: &str =
    "echo started $$; until [ -e \"$GO\" ]; do sleep 0.4; done; echo over";

/// A program from its text.
pub(crate) fn write_program(path: &Path, text: &str) {
    super::tmux::write_file(path, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A gcloud whose workers are this machine, with a home of their own below `dir` and programs of their own in
/// `dir/bin`. What it does with `$command` is `body`.
pub(crate) fn gcloud_here(dir: &Path, body: &str) -> Bench {
    std::fs::create_dir_all(dir.join("home")).unwrap();
    let text = format!(
        "#!/bin/bash\ncd '{dir}' || exit\nexport HOME=$PWD/home PATH=$PWD/bin:$PATH\n\
         for word; do case $word in --command=*) command=${{word#*=}} ;; esac; done\n{body}\n",
        dir = dir.display(),
    );
    let program = dir.join("gcloud");
    write_program(&program, &text);
    let program = Some(program.to_str().unwrap().to_owned());
    let config = GcloudConfig { program, target: "n1".to_owned(), ..GcloudConfig::default() };
    Bench { remote: gcloud::open(config), dir: dir.to_owned() }
}

/// So many workers of one target. All of them are this machine, where other tests have commands of the same tokens: that
/// of each test is called otherwise, else one would stop what is the other's.
pub(crate) fn workers(count: u32) -> Vec<Worker> {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default().replace("::", "-");
    let of = |index| format!("here-{}-{test}-{index}", std::process::id());
    (0..count).map(|index| Worker { index, address: of(index) }).collect()
}

/// Starts a command, or finds it started, and hears everything it says. A worker on which it cannot be started
/// ends as [`End::Lost`] with the reason.
pub(crate) fn run(
    remote: &dyn Remote,
    workers: &[Worker],
    work: &Work,
    token: &LaunchToken,
) -> Stream {
    let (begun, failed): (Vec<_>, Vec<_>) =
        remote.start(workers, work, token).into_iter().partition(|(_, started)| started.is_ok());
    let is_begun = |worker: &&Worker| begun.iter().any(|(index, _)| *index == worker.index);
    let begun: Vec<Worker> = workers.iter().filter(is_begun).cloned().collect();
    let failed = failed.into_iter().filter_map(|(worker, started)| {
        Some((worker, Output::End(End::Lost(started.err()?.to_string()))))
    });
    Box::new(failed.chain(remote.follow(&begun, token, &BTreeMap::new())))
}

/// What each worker said, and how it ended.
pub(crate) type Ends = BTreeMap<u32, (String, End)>;

/// The door, and a directory where tests and commands meet.
pub(crate) struct Bench {
    pub(crate) remote: Box<dyn Remote>,
    pub(crate) dir: PathBuf,
}

impl Bench {
    pub(crate) fn go(&self) -> PathBuf {
        self.dir.join("go")
    }

    /// A shell script as the work, with `$GO` in its environment.
    pub(crate) fn script(&self, script: &str) -> Work {
        Work {
            argv: ["bash", "-c", script].map(OsString::from).to_vec(),
            env: vec![("GO".into(), self.go().into())],
            ..Work::default()
        }
    }

    pub(crate) fn start(
        &self,
        workers: &[Worker],
        work: &Work,
        token: &str,
    ) -> Vec<Result<Started, RemoteError>> {
        let answers = self.remote.start(workers, work, &LaunchToken::from(token));
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Everything that is said, by worker, and how each ends.
    pub(crate) fn run(&self, workers: &[Worker], work: &Work, token: &str) -> Ends {
        collect(run(&*self.remote, workers, work, &LaunchToken::from(token)))
    }

    pub(crate) fn hear(&self, workers: &[Worker], token: &str) -> Ends {
        collect(self.remote.follow(workers, &LaunchToken::from(token), &BTreeMap::new()))
    }

    /// Waits until a command on a worker has said `started`, and returns its process id.
    pub(crate) fn started(&self, worker: &Worker, token: &str) -> u32 {
        let one = std::slice::from_ref(worker);
        let mut stream = self.remote.follow(one, &LaunchToken::from(token), &BTreeMap::new());
        let said = match stream.next() {
            Some((_, Output::Line { bytes, .. })) => String::from_utf8(bytes).unwrap(),
            other => panic!("it said nothing: {other:?}"),
        };
        said.trim().strip_prefix("started ").unwrap().parse().unwrap()
    }

    /// What a shell command says on each worker: on one output, on the other, and how it ends.
    pub(crate) fn ask(
        &self,
        workers: &[Worker],
        ask: &Ask,
    ) -> BTreeMap<u32, (String, String, End)> {
        let mut texts: BTreeMap<u32, (String, String)> = BTreeMap::new();
        let mut ends = BTreeMap::new();
        for (worker, reply) in self.remote.ask(workers, ask) {
            let (out, err) = texts.entry(worker).or_default();
            match reply {
                Reply::Out(bytes) => out.push_str(&String::from_utf8_lossy(&bytes)),
                Reply::Err(bytes) => err.push_str(&String::from_utf8_lossy(&bytes)),
                Reply::End(end) => {
                    let (out, err) = texts.remove(&worker).unwrap();
                    assert!(ends.insert(worker, (out, err, end)).is_none());
                }
            }
        }
        ends
    }
}

/// A stream to its end.
pub(crate) fn collect(stream: Stream) -> Ends {
    let mut text: BTreeMap<u32, String> = BTreeMap::new();
    let mut ends = BTreeMap::new();
    for (worker, said) in stream {
        let text = text.entry(worker).or_default();
        match said {
            Output::Line { bytes, .. } => text.push_str(&String::from_utf8_lossy(&bytes)),
            Output::End(end) => {
                assert!(ends.insert(worker, (text.clone(), end)).is_none(), "two ends of {worker}");
            }
        }
    }
    ends
}

pub(crate) fn is_running(pid: u32) -> bool {
    Process::read(pid).is_some_and(|process| !process.zombie)
}
