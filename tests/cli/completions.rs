//! Completion in the real shells: what Tab offers knows users, targets, aliases, windows and keys. A shell
//! that is not installed is skipped, and that is said.

use std::ffi::OsString;
use std::io::Write as _;

use serde_json::json;

use tpu_system::sys::proc;

use crate::common::env::{TPU, TestEnv};
use crate::common::tmux::write_script;

/// A lab with two jobs and one that waits, a tag and two slots; a tmux that nobody may call.
fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    let mut data = env.two_users();
    let mut first = env.record("alice", 7, "finished");
    first["job_tags"] = json!("sweep");
    first["extra_msgs"]["spec"] = json!({ "name": "llama" });
    let mut of_bob = env.record("bob", 3, "finished");
    of_bob["extra_msgs"]["spec"] = json!({ "name": "llava" });
    data["users"]["bob"]["job_data"] = json!([of_bob]);
    data["users"]["alice"]["job_data"] = json!([first, env.record("alice", 12, "killed")]);
    data["users"]["alice"]["working_dir"]["2"] = json!("/code/second");
    data["tpu_aliases"]["v3-big"] = json!("lab-tpuvm-v3-512-1");
    data["queue"] = json!({ "entries": [
        { "user": "alice", "number": 15, "name": "later", "target": "v2-1", "since": "2026-11-20T14:00:00Z" },
    ] });
    env.write_data(&data);
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(TPU, bin.join("tpu")).unwrap();
    write_script(&bin.join("tmux"), "echo tmux >>\"$HOME/called\"; exit 1");
    let mut path = OsString::from(bin.as_os_str());
    path.push(":/usr/local/bin:/usr/bin:/bin");
    env.set("PATH", path);
    env
}

/// What is typed before Tab (the last word is completed, perhaps from nothing), what must be offered, and
/// what must not.
const CASES: &[(&[&str], &[&str], &[&str])] = &[
    (&["tpu", "resu"], &["resume"], &["run"]),
    (&["tpu", "check", ""], &["alice", "bob"], &["v2-1"]),
    (&["tpu", "run", "v"], &["v2-1", "v3-big"], &["alice"]),
    (&["tpu", "run", "lab-tpuvm-v3"], &["lab-tpuvm-v3-512-1"], &["lab-tpuvm-v2-32-1"]),
    (&["tpu", "run", "v2-1", "alice", "l"], &["lr="], &["rule="]),
    (&["tpu", "run", "v2-1", "alice", "ru"], &["rule="], &["lr="]),
    (&["tpu", "kill", "alice", ""], &["7", "12", "15", "tag:sweep"], &["lr="]),
    (&["tpu", "wait", "alice", "la"], &["later"], &["llama"]),
    (&["tpu", "resume", "alice", "ll"], &["llama"], &["llava"]),
    (&["tpu", "check", "--user", "bob", "l"], &["llava"], &["llama"]),
    (&["tpu", "-k", "alice", "1"], &["12"], &["7"]),
    (&["tpu", "set-settings", "monitor_a"], &["monitor_after_run"], &["theme"]),
    (&["tpu", "del-config-alias", "--user", "alice", "l"], &["lr"], &["alice"]),
    (&["tpu", "get-dir", "alice", ""], &["1", "2"], &["7"]),
    (&["tpu", "logs", "--fo"], &["--follow"], &["--grep"]),
    (&["tpu", "release", "v3"], &["v3-big"], &["v2-1"]),
    (&["tpu", "stats", "al"], &["alice"], &["llama"]),
    (&["tpu", "disk", "al"], &["alice"], &["llama"]),
    (&["tpu", "quo"], &["quota"], &["queue"]),
    (&["tpu", "quota", "v5"], &["v5e", "v5p"], &["alice"]),
    (&["tpu", "billing", "--mo"], &["--month"], &["--csv"]),
    (&["tpu", "checkpoints", "al"], &["alice"], &[]),
    (&["tpu", "archive", "re"], &["restore"], &["list"]),
    (&["tpu", "fl"], &["flavors"], &["run"]),
    (&["tpu", "kjob", "re"], &["resources-flavors"], &["list"]),
];

/// Runs a script in a shell; `None` if there is no such shell.
fn in_shell(env: &TestEnv, shell: &str, script: &str) -> Option<String> {
    let there = ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|dir| std::path::Path::new(dir).join(shell).exists());
    if !there {
        let said = writeln!(
            std::io::stderr(),
            "skipped: {shell} is not installed (./x test --install installs it)"
        );
        assert!(said.is_ok(), "somebody must hear that");
        return None;
    }
    let flags: &[&str] = match shell {
        "bash" => &["--norc", "--noprofile", "-c"],
        "zsh" => &["-f", "-c"],
        _ => &["--no-config", "-c"],
    };
    let words: Vec<&str> = flags.iter().copied().chain([script]).collect();
    let output = proc::run(&env.spawn_program(shell, &words)).unwrap();
    assert!(
        output.status.success(),
        "{shell}: {}\n{}\n{script}",
        output.complaint(),
        output.text()
    );
    Some(output.text())
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
}

/// Runs every case through `script`, which makes of one case what the shell would offer, one a line.
fn offers(shell: &str, script: Script) {
    let env = lab();
    for (words, wanted, unwanted) in CASES {
        let Some(text) = in_shell(&env, shell, &script(words)) else { return };
        // zsh is given a colon of the word itself with a backslash.
        let text = text.replace("\\:", ":");
        // Behind the word there may be a blank, or its description.
        let offered: Vec<&str> =
            text.lines().filter_map(|line| line.split(['\t', ':']).next()).map(str::trim).collect();
        let has = |word: &&&str| {
            let word = word.split(':').next().unwrap_or(word);
            offered.iter().any(|offer| offer.trim_end() == word)
        };
        let missing: Vec<_> = wanted.iter().filter(|word| !has(word)).collect();
        assert!(missing.is_empty(), "{shell}: {words:?} does not offer {missing:?} but:\n{text}");
        let odd: Vec<_> = unwanted.iter().filter(has).collect();
        assert!(odd.is_empty(), "{shell}: {words:?} offers {odd:?}");
    }
    let called = std::fs::read_to_string(env.path("called")).unwrap_or_default();
    assert!(called.is_empty(), "a completion asked tmux");
}

/// What a shell would offer for these words, one a line: [`in_shell`] runs it.
type Script = fn(&[&str]) -> String;

fn bash(words: &[&str]) -> String {
    format!(
        "source <(tpu completions bash)\n\
         COMP_WORDS=({}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9\n\
         function_name=$(complete -p tpu | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
         \"$function_name\" tpu \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\" 2>/dev/null\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted(words)
    )
}

/// zsh completes only at its own line editor: compdef and _describe are replaced by what they are given.
fn zsh(words: &[&str]) -> String {
    format!(
        "compdef() {{ the_function=$1 }}\n\
         _describe() {{ while [[ $1 == -* ]]; do shift; done; shift; print -rl -- ${{(P)1}} }}\n\
         source <(tpu completions zsh)\n\
         words=({}); CURRENT=${{#words}}\n\
         $the_function",
        quoted(words)
    )
}

fn fish(words: &[&str]) -> String {
    let (last, before) = words.split_last().unwrap();
    format!("tpu completions fish | source\ncomplete -C '{} {last}'", before.join(" "))
}

#[test]
fn bash_offers_what_is_there() {
    offers("bash", bash);
}

#[test]
fn zsh_offers_what_is_there() {
    offers("zsh", zsh);
}

#[test]
fn fish_offers_what_is_there() {
    offers("fish", fish);
}

/// Names that a file of others can hold: what a shell would run, split or expand, what a terminal would act on.
const HOSTILE: &[&str] = &[
    "v9$(touch pwned)",
    "v9`touch pwned`",
    "v9;touch pwned",
    "v9|x",
    "v9&x",
    "v9>pwned",
    "v9 two",
    "v9'q",
    "v9\"q",
    "v9\\q",
    "v9*",
    "v9{a,b}",
    "v9!x",
    "v9\u{1b}]0;title\u{7}",
    "v9\u{9b}2J",
    "v9\u{202e}x",
    "v9\nv9x",
    "v9\u{b}v9x",
    "v9\tx",
    "v9[1]",
    "v9~x",
    "v9#x",
];

/// Only what is a word to every shell is offered, and no description does anything to a terminal.
fn offers_no_harm(shell: &str, script: Script) {
    let env = lab();
    let mut data = env.data();
    for name in HOSTILE.iter().chain(&["v9-good"]) {
        data["tpu_aliases"][name] = json!("lab\u{1b}]0;title\u{7}\u{202e}$(touch pwned)");
        data["users"]["alice"]["config_aliases"][name] = json!("config\u{9b}2J.`touch pwned`");
    }
    let tags = HOSTILE.iter().chain(&["v9-good"]).enumerate().map(|(at, tag)| {
        let mut record = env.record("alice", 20 + at as u64, "finished");
        record["job_tags"] = json!(tag);
        record["tpu"] = json!("t\u{1b}]0;title\u{7}");
        record
    });
    data["users"]["alice"]["job_data"] = tags.collect();
    data["users"]["alice"]["working_dir"]["3"] = json!("/code/\u{1b}[2J\u{202e}");
    env.write_data(&data);
    for (words, wanted) in [
        (&["tpu", "run", "v9"][..], "v9-good"),
        (&["tpu", "del-config-alias", "alice", "v9"], "v9-good"),
        (&["tpu", "run", "local", "alice", "v9"], "v9-good="),
        (&["tpu", "kill", "alice", "tag:v9"], "v9-good"),
        (&["tpu", "logs", "alice", "2"], "20"),
        (&["tpu", "get-dir", "alice", ""], "3"),
    ] {
        let Some(text) = in_shell(&env, shell, &script(words)) else { return };
        let wanted_there = text.lines().any(|line| line.contains(wanted));
        assert!(wanted_there, "{shell}: {words:?} does not offer {wanted}:\n{text}");
        let acts = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
        assert!(!text.contains(acts), "{shell}: {words:?}: {text:?}");
        // Only a description may hold what is no plain word.
        // zsh escapes a colon of the word itself.
        for line in text.lines().map(|line| line.replace("\\:", "-")) {
            let offered = match shell {
                "fish" => line.split('\t').next().unwrap_or_default(),
                "zsh" => line.split(':').next().unwrap_or_default(),
                _ => &*line,
            };
            let odd = |c: char| !c.is_ascii_alphanumeric() && !"-=:".contains(c);
            assert!(!offered.trim_end().contains(odd), "{shell}: {words:?} offers {offered:?}");
        }
    }
    let pwned = env.path("pwned").exists();
    assert!(!pwned, "{shell} has run a name");
}

#[test]
fn bash_offers_no_harm() {
    offers_no_harm("bash", bash);
}

#[test]
fn zsh_offers_no_harm() {
    offers_no_harm("zsh", zsh);
}

#[test]
fn fish_offers_no_harm() {
    offers_no_harm("fish", fish);
}
