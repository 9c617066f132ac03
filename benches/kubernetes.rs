//! P17: what it costs to keep a thousand Jobs of a Kubernetes cluster in view, beside the two lists that answer for all
//! of them; and a turn of the daemon with nothing to do.
//!
//! The cluster is the simulated one, in a process of its own, with so many nodes that some of the Jobs run and print;
//! the others wait.

use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tpu_core::model::ids::UserName;
use tpu_core::model::view::Whose;
use tpu_ops::Ctx;
use tpu_ops::act::outlook::look;
use tpu_ops::base::watch;
use tpu_ops::observe::snapshot::LookMemory;

use crate::Plan;
use crate::common::table::{Amount, Row, Table};
use crate::common::{Lab, TPU, ctx, data, in_turn, timed, words};
use crate::turn::timed_turn;

const ROUNDS: usize = 20;
const JOBS: u64 = 1_000;
const WHAT: &str = "1000 Kubernetes Jobs";
/// What a Job does: nothing, for as long as anybody looks.
const PROGRAM: &str = "sleep 100000";

/// A cluster, and a lab with a thousand Jobs in it.
struct Site {
    lab: Lab,
    cluster: Child,
    agent: ureq::Agent,
    server: String,
    token: String,
}

impl Drop for Site {
    fn drop(&mut self) {
        // It ends its containers; killed outright it would leave them.
        let _ = kill_process(Pid::from_child(&self.cluster), Signal::TERM);
        drop(self.cluster.wait());
    }
}

/// A look at all of them, a turn, and a whole command.
pub(crate) fn kubernetes(table: &mut Table, _: &Plan) -> io::Result<()> {
    let site = Site::new()?;
    let own = ctx(&site.lab);
    let (mut memory, mut monitors) = (LookMemory::default(), LookMemory::default());
    let alice = UserName::from("alice");
    for _ in 0..3 {
        looked(&own, &mut memory, &alice)?;
        drop(timed_turn(&own, &mut monitors));
    }
    let times = in_turn(
        ROUNDS,
        &mut [
            &mut || looked(&own, &mut memory, &alice),
            &mut || site.lists(),
            &mut || timed_turn(&own, &mut monitors),
            &mut || site.lab.tpu("check --json"),
        ],
    )?;
    // Else it would look as if a daemon ran already.
    watch::forget(&own);
    let [screen, floor, turn, command] = times.as_slice() else {
        return Err(io::Error::other("four things give four samples"));
    };
    let least = floor.median();
    let most = Amount::Time(least * 13 / 10 + Duration::from_millis(5));
    let bound = "≤ 1.3 × the lists + 5 ms";
    for (figure, times) in [
        (format!("P17 a look at {WHAT}"), screen),
        (format!("P14 an idle turn of the daemon, {WHAT}"), turn),
    ] {
        table.push(&Row::time(figure, times).floor(Amount::Time(least)).bound(most, bound))?;
    }
    let figure = format!("P17 `check --json`, {WHAT}, the whole command");
    table.push(&Row::time(figure, command).floor(Amount::Time(least)))
}

impl Site {
    #[expect(clippy::disallowed_methods, reason = "it is at work until the figures are taken")]
    fn new() -> io::Result<Self> {
        let lab = Lab::new()?;
        // Code as somebody has it, and not what the programs of the lab write.
        let code = lab.dir().join("code");
        std::fs::create_dir(&code)?;
        std::fs::write(code.join("main.py"), "print('step 1 loss 0.5')\n".repeat(1_000))?;
        lab.write(&data(&code, &[]))?;
        let mut cluster = Command::new(TPU)
            .args(["sim", "serve", "--kubernetes", "--port", "0"])
            .env("HOME", lab.dir())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let said = cluster.stdout.take().ok_or_else(|| io::Error::other("it says nothing"))?;
        let named = BufReader::new(said).lines().map_while(Result::ok).find_map(|line| {
            line.split_once("KUBECONFIG=").map(|(_, path)| path.trim().to_owned())
        });
        let kubeconfig = named.ok_or_else(|| io::Error::other("no kubeconfig is named"))?;
        let config: Value = serde_json::from_slice(&std::fs::read(&kubeconfig)?)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let server = text(&config["clusters"][0]["cluster"]["server"]);
        let token = text(&config["users"][0]["user"]["token"]);
        let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
        let agent = ureq::Agent::config_builder().tls_config(tls).build().new_agent();
        let site = Self { lab, cluster, agent, server, token };
        let register = format!(
            "register lab --kind kubernetes --kubeconfig {kubeconfig} --context lab -i a -r no-gpu"
        );
        site.lab.run(TPU, &words(&register))?;
        let array = format!("0-{}", JOBS - 1);
        let run = ["run", "lab", "alice", "-q", "--array", &array, "--"];
        site.lab.run(TPU, &[&run[..], &["sh", "-c", PROGRAM]].concat())?;
        Ok(site)
    }

    /// The two lists that a look needs, by the barest client.
    fn lists(&self) -> io::Result<Duration> {
        let ask = |path: &str| -> io::Result<usize> {
            let url = format!("{}{path}?labelSelector=tpu.launch", self.server);
            let bearer = format!("Bearer {}", self.token);
            let asked = self.agent.get(&url).header("Authorization", &bearer).call();
            let mut answer = asked.map_err(io::Error::other)?;
            let text = answer.body_mut().read_to_string().map_err(io::Error::other)?;
            let list: Value = serde_json::from_str(&text)?;
            Ok(list["items"].as_array().map_or(0, Vec::len))
        };
        let (count, took) = timed(|| {
            let jobs = ask("/apis/batch/v1/namespaces/lab/jobs")?;
            let pods = ask("/api/v1/namespaces/lab/pods")?;
            Ok::<usize, io::Error>(jobs.min(pods))
        });
        match count? {
            count if count as u64 == JOBS => Ok(took),
            count => Err(io::Error::other(json!({"listed": count, "of": JOBS}).to_string())),
        }
    }
}

fn looked(ctx: &Ctx, memory: &mut LookMemory, user: &UserName) -> io::Result<Duration> {
    let (seen, took) = timed(|| look(ctx, memory, &Whose::of([user.clone()])));
    let seen = seen.map_err(|error| io::Error::other(error.message))?;
    let known = seen.jobs.iter().filter(|job| job.shown.unknown.is_none()).count();
    if known as u64 != JOBS {
        return Err(io::Error::other(format!("a look knows {known} of {JOBS} Jobs")));
    }
    Ok(took)
}
