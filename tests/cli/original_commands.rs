//! The original's manual as a table: every command in the spelling that people type today.

use serde::Deserialize;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

const CASES: &str = include_str!("../cases/original_commands.toml");

#[derive(Deserialize)]
pub(crate) struct Cases {
    pub(crate) group: Vec<Group>,
    spellings: Spellings,
}

#[derive(Deserialize)]
pub(crate) struct Group {
    name: String,
    pub(crate) rows: Vec<Vec<toml::Value>>,
}

#[derive(Deserialize)]
struct Spellings {
    rows: Vec<[String; 4]>,
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

pub(crate) fn cases() -> Cases {
    toml::from_str(CASES).unwrap()
}

pub(crate) fn lab() -> TestEnv {
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
    write_file(&env.path("more.json"), r#"{"users": {"bob": {"windows_offset": 9}}}"#);
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

/// The words of a spelling that are commands: `kill W, kill-job, -k; w=` -> kill, kill-job, -k.
fn commands(spelling: &str) -> Vec<String> {
    let parts = spelling.split(';').next().unwrap_or_default().split(", ");
    let first = parts.filter_map(|part| part.split_whitespace().next());
    let is_command = |word: &&str| !word.contains('=') && *word != "--ssn" && *word != "-no-tag";
    first.filter(is_command).map(str::to_owned).collect()
}

#[test]
fn every_spelling_of_the_table_is_tried_and_ends_as_the_table_says() {
    let cases = cases();
    let tried: Vec<(&str, i64)> = cases
        .group
        .iter()
        .flat_map(|group| &group.rows)
        .map(|row| (row[0].as_str().unwrap(), row[1].as_integer().unwrap()))
        .collect();
    for [spelling, place, verdict, note] in &cases.spellings.rows {
        assert!(["README", "sources"].contains(&place.as_str()), "{spelling}: {place}");
        let of_run = spelling.starts_with("run ");
        for command in if of_run { vec!["run".to_owned()] } else { commands(spelling) } {
            let lines = tried.iter().filter(|(line, _)| {
                let first = line.split(' ').next().unwrap_or_default();
                // `-apply` and the like are later words.
                first == command || line.split(' ').skip(1).any(|word| word == command)
            });
            let codes: Vec<i64> = lines.map(|(_, code)| *code).collect();
            assert!(!codes.is_empty(), "'{command}' ({spelling}) is in no row of the table");
            match verdict.as_str() {
                "works" => {
                    assert!(codes.contains(&0) || codes.contains(&4), "{spelling}: {codes:?}");
                }
                "differently" => assert!(!note.is_empty(), "{spelling}: what is different?"),
                "not" => {
                    assert!(!note.is_empty(), "{spelling}: what instead?");
                    assert!(of_run || codes.iter().all(|code| *code == 4), "{spelling}: {codes:?}");
                }
                other => panic!("{spelling}: {other}"),
            }
        }
    }
}

/// docs/commands.md, from the table.
fn page(cases: &Cases) -> String {
    let mut page = String::from(
        "# Commands of the original\n\nThe original is the Python tool whose data file and commands `tpu` takes \
         over. This page has every spelling of\nits README and sources, and what it does here. Each is tried \
         by a test (`tests/cases/original_commands.toml`, from\nwhich this page is made).\n\n| typed behind `tpu` | known from | here | |\n|---|---|---|---|\n",
    );
    for [spelling, place, verdict, note] in &cases.spellings.rows {
        let here = match verdict.as_str() {
            "works" => "works",
            "differently" => "works differently",
            _ => "not, on purpose",
        };
        let cell = |text: &str| text.replace('|', "\\|");
        page += &format!("| `{}` | {place} | {here} | {} |\n", cell(spelling), cell(note));
    }
    page
}

#[test]
fn the_page_of_commands_is_the_table() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md");
    let made = page(&cases());
    if tpu_system::sys::env::Env::read().var("INSTA_UPDATE") == Some("always") {
        write_file(&path, &made);
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "docs/commands.md is another table: write it with ./x bless");
}
