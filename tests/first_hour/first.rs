//! The first command of an account, whichever it is: nothing is set up before it.

use serde_json::Value;

use super::Newcomer;
use crate::common::env::TPU;

impl Newcomer {
    fn users(&self) -> Vec<String> {
        let data = self.data();
        let users = data["users"].as_object().into_iter().flatten();
        users.map(|(name, _)| name.clone()).collect()
    }
}

#[test]
fn whatever_writes_may_be_the_first_command() {
    for line in [
        "hosts set local --gpus 2",
        "hosts add gpu1 --no-probe",
        "hosts detect local",
        "set-settings max_parallel 3",
        "set-cur 1",
        "set-dir 1 .",
        "add-config-alias lr config.lr",
        "add-tpu-alias mine lab-tpuvm-v2-32-1",
        "set-monitor-config checking_freq 600",
        "queue create night",
        "token create page --role viewer",
        "submit local --hold -- true",
    ] {
        let newcomer = Newcomer::new();
        let answer = newcomer.types("exp", line).exits(0);
        assert!(answer.stderr.contains("made user john-doe in "), "{line}: {answer}");
        assert_eq!(newcomer.users(), ["john-doe"], "{line}");
        let tried = Newcomer::new();
        drop(tried.types("exp", &format!("--dry-run {line}")));
        assert_eq!(tried.data(), Value::Null, "{line}");
    }
    // What needs something that is not there says what to type.
    for line in ["ack", "data set x 1", "clear-monitor-log", "check", "kill 1", "hosts"] {
        let newcomer = Newcomer::new();
        drop(newcomer.types("exp", line).exits(5).says(&["there is no data file", "tpu init"]));
        assert_eq!(newcomer.data(), Value::Null, "{line}");
    }
}

/// In a container the environment often does not name the account, and neither does the machine.
#[test]
fn an_account_without_a_name_is_called_by_its_number() {
    let mut newcomer = Newcomer::new();
    newcomer.env.unset("USER");
    newcomer.env.unset("LOGNAME");
    drop(newcomer.types("exp", "run local -q -- python3 my.py").exits(0).says(&["made user "]));
    assert_eq!(newcomer.users().len(), 1);
    for (account, user) in [("1000", "user-"), ("\u{4e2d}\u{6587}", "user-"), ("0bob", "bob")] {
        let mut newcomer = Newcomer::new();
        newcomer.env.set("USER", account);
        drop(newcomer.types("exp", "run local -q -- true").exits(0));
        assert!(newcomer.users()[0].starts_with(user), "{:?}", newcomer.users());
    }
    let mut newcomer = Newcomer::new();
    newcomer.env.unset("USER");
    let words = ["unshare", "--user", "--map-user=4242"].map(str::to_owned).to_vec();
    newcomer.env.run_through(words);
    if newcomer.types("exp", "--version").code != 0 {
        eprintln!("skipped: no user namespace can be made");
        return;
    }
    drop(newcomer.types("exp", "set-cur 1").exits(0).says(&["made user user-4242 in "]));
    drop(newcomer.types("exp", "init --no-input").exits(0).says(&["User user-4242 is there"]));
}

#[test]
fn a_first_command_may_name_its_user() {
    for line in [
        "run local alice -q -- python3 my.py",
        "--user alice run local -q -- python3 my.py",
        "run local user=alice -q -- python3 my.py",
        "submit local alice -- python3 my.py",
    ] {
        let newcomer = Newcomer::new();
        drop(newcomer.types("exp", line).exits(0).says(&["alice/1", "made user alice in "]));
        assert_eq!(newcomer.users(), ["alice"], "{line}");
        assert_eq!(newcomer.prints(1), "this is mine\n");
    }
    let mut newcomer = Newcomer::new();
    newcomer.env.set("TPU_USER", "alice");
    drop(newcomer.types("exp", "run local -q -- true").exits(0).says(&["made user alice in "]));
    let newcomer = Newcomer::new();
    drop(newcomer.types("exp", "--user run run local -q -- true").exits(2));
    // A command whose -- is missing is nobody's name.
    for (line, says) in
        [("run local alice", "-- python3 main.py"), ("run local python3", "-- python3")]
    {
        drop(newcomer.types("exp", line).exits(2).says(&["is no target", says]));
    }
    assert_eq!(newcomer.data(), Value::Null);
    drop(newcomer.types("exp", "init --no-input").exits(0).says(&["Added user john-doe"]));
}

#[test]
fn two_first_commands_at_once_make_one_user() {
    let newcomer = Newcomer::new();
    let both =
        format!("for n in 1 2 3 4; do {TPU} run local -q --name j$n -- python3 my.py & done; wait");
    let spawn = newcomer.env.spawn_program("sh", &["-c", &both]).cwd(newcomer.path("exp"));
    let said = newcomer.env.output(&spawn).exits(0);
    assert_eq!(said.stdout.matches("Started john-doe/").count(), 4, "{said}");
    assert_eq!(said.stderr.matches("made user").count(), 1, "{said}");
    assert_eq!(newcomer.users(), ["john-doe"]);
    for job in 1..=4 {
        assert_eq!(newcomer.prints(job), "this is mine\n");
    }
}
