//! The original's manual as a table: every command in the spelling that people type today.

use serde::Deserialize;

use crate::common::env::TestEnv;

const CASES: &str = include_str!("cases/original_commands.toml");

#[derive(Deserialize)]
struct Cases {
    group: Vec<Group>,
    later: Later,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    rows: Vec<Vec<toml::Value>>,
}

#[derive(Deserialize)]
struct Later {
    rows: Vec<String>,
}

/// A script that finishes, fails after a checkpoint (`mode=fail`), or is busy (`mode=busy`).
const STAGING: &str = r#"
case " $* " in
  *--config.mode=busy*) sleep 1000 ;;
  *--config.mode=fail*)
    log=$TPU_TEST_ROOT/logs/$TPU_LAUNCH
    mkdir -p "$log/checkpoint_1" && echo weights >"$log/checkpoint_1/data"
    tpu upd-log "alice:0" "$log" "$PWD" "${1#ka=}" now
    exit 3 ;;
  *) tpu finish-job "$(tmux display-message -p -t "$TMUX_PANE" '#S:#I')" ;;
esac
"#;

fn cases() -> Cases {
    toml::from_str(CASES).unwrap()
}

fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_TEST_ROOT", env.path(""));
    for user in ["alice", "bob"] {
        env.code(user, "staging.sh", STAGING);
    }
    let mut data = env.two_users();
    for user in ["alice", "bob"] {
        data["users"][user]["config_aliases"]["mode"] = "config.mode".into();
    }
    env.write_data(&data);
    env
}

/// Runs one group; what is wrong with it, all of it.
fn run(group: &Group) -> Vec<String> {
    let env = lab();
    let mut wrong = Vec::new();
    for row in &group.rows {
        let [line, code, words @ ..] = row.as_slice() else {
            panic!("a row is too short: {row:?}")
        };
        let (line, code) = (line.as_str().unwrap(), code.as_integer().unwrap());
        let output = env.tpu(&line.replace("[DIR]", env.root()));
        let text = output.to_string();
        let missing: Vec<&str> = words
            .iter()
            .map(|word| word.as_str().unwrap())
            .filter(|word| !text.contains(word))
            .collect();
        // Commands that answer with their exit code print a result as well.
        let by_code = ["wait", "daemon status"].iter().any(|start| line.starts_with(start));
        let answers = code == 0 || output.stdout.is_empty() || by_code;
        if i64::from(output.code) != code || !missing.is_empty() || !answers {
            wrong.push(format!(
                "{}: tpu {line}\nexpected exit code {code} and {missing:?}, got:\n{text}",
                group.name
            ));
        }
        if code > 1 && !output.stderr.contains("hint: ") {
            wrong.push(format!("{}: tpu {line}\nno hint:\n{text}", group.name));
        }
    }
    wrong
}

#[test]
fn every_command_of_the_manual_works_as_it_is_typed() {
    let cases = cases();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            cases.group.iter().map(|group| scope.spawn(move || run(group))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} rows are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn commands_that_come_later_say_so_and_change_nothing() {
    let env = lab();
    let bytes = env.data_bytes();
    for line in cases().later.rows {
        let output = env.tpu(&line).exits(2);
        let name = line.split(' ').next().unwrap();
        drop(output.says(&[&format!("no command '{name}'"), "hint: "]));
        assert!(env.data_bytes() == bytes, "{line} wrote data.json");
    }
}
