//! What `--json` prints: one document that docs/schema.json describes, from every command; and the same
//! bytes for the same state, apart from times.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};

use tpu::cli::args::Cli;
use tpu::cli::legacy;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::Pending;
use tpu_engine::kinds::KindOfTarget;
use tpu_system::sys::env::Env;
use tpu_wire::jobs::SnapshotDocument;
use tpu_wire::text;

use crate::cli::original_commands::{cases, lab};
use crate::cli::schema::schema;
use crate::common::env::TestEnv;
use crate::common::json_schema::{Definitions, Validator};
use crate::common::output::CommandOutput;
use crate::common::samples;
use crate::common::tmux::write_file;

/// Commands that print no document: they take over the terminal, or are called by the launcher.
const SILENT: [&str; 5] = ["monitor", "attach", "launcher", "demo-train", "demo"];

/// Under this name the schema has what commands print that kinds of target bring along.
const OF_KIND: &str = "of-kind";

/// Whether a kind of target has brought a command along.
fn of_kind(command: &str) -> bool {
    tpu::built_in::kinds()
        .all()
        .flat_map(KindOfTarget::commands)
        .any(|it| (it.command)().get_name() == command)
}

/// The members that the schema names are all there are: a new one is to be described.
fn closed(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            map.values_mut().for_each(closed);
        }
        Value::Array(list) => list.iter_mut().for_each(closed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The definition of every command.
struct Schemas {
    whole: Value,
    definitions: Definitions,
}

impl Schemas {
    fn new() -> Self {
        let mut whole = schema();
        drop(Validator::of(&whole));
        closed(&mut whole);
        Self { definitions: Definitions::of(&whole), whole }
    }

    /// Fails the test where no document has this name.
    #[track_caller]
    fn has(&self, name: &str) {
        assert!(
            self.whole["$defs"][name].is_object(),
            "the table in crates/wire/src/schema.rs has no document of '{name}'"
        );
    }

    /// What is wrong with a document.
    #[track_caller]
    fn complaints(&mut self, name: &str, document: &Value) -> Vec<String> {
        self.has(name);
        self.definitions.complaints(name, document)
    }
}

/// The name under which the schema knows what a line prints.
fn name_of(line: &str) -> String {
    let words = legacy::rewrite(line.split_whitespace().map(OsString::from).collect());
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
    match words.as_slice() {
        [] => "welcome".to_owned(),
        [command, ..] if of_kind(command) => OF_KIND.to_owned(),
        [family @ ("data" | "board" | "daemon"), step, ..] => format!("{family}-{step}"),
        ["sim", "list", ..] => "sim-list".to_owned(),
        [command, ..] => (*command).to_owned(),
    }
}

/// Runs a line with `--json`.
fn tried(env: &TestEnv, line: &str) -> CommandOutput {
    let flag = if line.contains("--json") { "" } else { "--json " };
    env.tpu(&format!("{flag}{line}"))
}

/// What is wrong with what a line has printed.
fn faults(
    schemas: &mut Schemas,
    line: &str,
    code: Option<i64>,
    output: &CommandOutput,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if output.stdout.matches(r#""schema":1"#).count() > 1 {
        wrong.push("a member stands there twice".to_owned());
    }
    if code.is_some_and(|code| code != i64::from(output.code)) {
        wrong.push(format!("exit code {} instead of {code:?}", output.code));
    }
    wrong.extend(documents(schemas, line, output));
    wrong.into_iter().map(|what| format!("$ tpu --json {line}\n{what}\n{output}")).collect()
}

fn documents(schemas: &mut Schemas, line: &str, output: &CommandOutput) -> Vec<String> {
    let (name, text) = if output.stdout.is_empty() {
        ("error".to_owned(), &output.stderr)
    } else {
        (name_of(line), &output.stdout)
    };
    if SILENT.contains(&name.as_str()) {
        return Vec::new();
    }
    match serde_json::from_str::<Value>(text) {
        Ok(document) => schemas.complaints(&name, &document),
        Err(e) => vec![format!("no single document: {e}")],
    }
}

#[test]
fn every_command_prints_what_the_schema_says() {
    let printed: Vec<(String, Option<i64>, CommandOutput)> = std::thread::scope(|scope| {
        let cases = cases();
        let threads: Vec<_> = cases
            .group
            .into_iter()
            .map(|group| {
                scope.spawn(move || {
                    let env = lab();
                    let rows = group.rows.iter().map(|row| {
                        let line = row[0].as_str().unwrap().replace("[DIR]", env.root());
                        let output = tried(&env, &line);
                        (line, row[1].as_integer(), output)
                    });
                    rows.collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut schemas = Schemas::new();
    let wrong: Vec<String> = printed
        .iter()
        .flat_map(|(line, code, output)| faults(&mut schemas, line, *code, output))
        .collect();
    assert!(wrong.is_empty(), "{} documents are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn what_the_table_of_spellings_does_not_reach_prints_it_too() {
    let (mut env, mut schemas) = (lab(), Schemas::new());
    drop(env.own_crontab());
    write_file(
        &env.path("board.csv"),
        "alias,status,user\nv2-1,reserved,bob\nv9,free,\nv2-1,lost,x\n",
    );
    write_file(&env.path("text.log"), "KeyError: 'lr'\n");
    let job = env.start("echo step 3/10 loss=0.5; exec sleep 1000", &[] as &[&str]);
    assert_eq!(job, 1);
    let lines = [
        ("", 0),
        ("logs 1 alice", 0),
        ("check alice", 0),
        ("daemon status", 1),
        ("daemon start --dry-run", 0),
        ("run local alice --dry-run -- true", 0),
        ("daemon start", 0),
        ("daemon status", 0),
        ("daemon restart --dry-run", 0),
        ("daemon restart", 0),
        ("uninstall --dry-run --user alice", 0),
        ("export out --dry-run", 0),
        ("export out", 0),
        ("daemon plan", 0),
        ("check alice", 0),
        ("daemon stop --dry-run", 0),
        ("daemon stop", 0),
        ("monitor-log", 0),
        ("kill 1 alice --dry-run", 0),
        ("kill-window 1 alice --dry-run", 0),
        ("clean alice --dry-run", 0),
        ("clean alice --with-results --dry-run", 0),
        ("disk", 0),
        ("disk alice", 0),
        ("clear-all alice --dry-run", 0),
        ("del-user bob --dry-run -y", 0),
        ("set-cur 2 alice --dry-run", 0),
        ("kill 1 alice", 0),
        ("history alice", 0),
        ("fail-job alice:1", 4),
        ("doctor", 0),
        ("doctor --restore", 0),
        ("board import csv board.csv", 1),
        ("board export json", 0),
        ("init --name alice --dry-run", 0),
    ];
    let wrong: Vec<String> = lines
        .iter()
        .flat_map(|(line, code)| faults(&mut schemas, line, Some(*code), &tried(&env, line)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A value on one line if it is short, else each of its parts on a line.
fn laid_out(value: &Value, indent: usize) -> String {
    let (open, parts, close): (_, Vec<String>, _) = match value {
        Value::Object(map) => {
            let member = |(name, value): (_, &Value)| {
                format!("{}: {}", json!(name), laid_out(value, indent + 2))
            };
            ("{", map.iter().map(member).collect(), "}")
        }
        Value::Array(list) => {
            ("[", list.iter().map(|item| laid_out(item, indent + 2)).collect(), "]")
        }
        plain => return plain.to_string(),
    };
    let line = parts.join(", ");
    if !line.contains('\n') && indent + line.len() <= 110 {
        return format!("{open}{line}{close}");
    }
    let (inner, outer) = (" ".repeat(indent + 2), " ".repeat(indent));
    format!("{open}\n{inner}{}\n{outer}{close}", parts.join(&format!(",\n{inner}")))
}

#[test]
fn the_page_of_schemas_is_what_the_types_give() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema.json");
    let made = laid_out(&schema(), 0) + "\n";
    if Env::read().var("INSTA_UPDATE") == Some("always") {
        write_file(&path, &made);
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == made,
        "docs/schema.json is not what the types of crates/wire/src give: write it with ./x schema, and look at the diff, \
         for scripts see it too"
    );
}

#[test]
fn the_schema_describes_every_command() {
    let schemas = Schemas::new();
    for command in Cli::definitions().get_subcommands() {
        let name = command.get_name();
        let steps: Vec<String> = match name {
            "data" | "board" | "daemon" => command
                .get_subcommands()
                .map(|step| format!("{name}-{}", step.get_name()))
                .collect(),
            _ if of_kind(name) => vec![OF_KIND.to_owned()],
            _ => vec![name.to_owned()],
        };
        for name in steps.iter().filter(|name| !SILENT.contains(&name.as_str())) {
            // The daemon in the foreground prints its log and no document.
            if name != "daemon-run" {
                schemas.has(name);
            }
        }
    }
}

/// Fails the test unless a document is what the schema says of a command; for commands that need more of a
/// lab than the table has.
#[track_caller]
pub(crate) fn assert_described(name: &str, document: &Value) {
    thread_local! {
        /// Read once: it is long.
        static SCHEMAS: RefCell<Schemas> = RefCell::new(Schemas::new());
    }
    let wrong = SCHEMAS.with_borrow_mut(|schemas| schemas.complaints(name, document));
    assert!(wrong.is_empty(), "{name}: {wrong:?}\n{document:#}");
}

#[test]
fn a_job_that_an_engine_holds_says_why_it_waits() {
    let mut look = samples::snapshot();
    look.jobs.truncate(1);
    look.jobs[0].shown.pending = Some(Pending {
        reason: Some("Priority".to_owned()),
        expected_start: Some(Timestamp::from_second(samples::NOW)),
        raw: "PENDING".to_owned(),
    });
    let document: Value = serde_json::from_str(&text(&SnapshotDocument::from(&look))).unwrap();
    assert_described("check", &document);
    assert_eq!(document["jobs"][0]["status"], "pending");
    assert_eq!(
        document["jobs"][0]["pending"],
        json!({ "reason": "Priority", "expected_start": "2026-11-20T14:02:11Z", "raw": "PENDING" })
    );
}

#[test]
fn a_path_that_is_no_text_is_told_as_well_as_can_be() {
    let (env, mut schemas) = (lab(), Schemas::new());
    let dir = env.path("").join(OsStr::from_bytes(b"b\xffd"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::copy(env.data_path(), dir.join("data.json")).unwrap();
    let words = ["--json".as_ref(), "init".as_ref(), "--from".as_ref(), dir.as_os_str()];
    let document = env.tpu_words(&words).exits(0).json();
    assert_eq!(schemas.complaints("init", &document), [] as [String; 0]);
    assert!(document["data"].as_str().unwrap().ends_with("b\u{fffd}d/data.json"), "{document}");
}

/// A document without what may differ between two looks at the same state.
fn timeless(value: &mut Value) {
    const TIMES: [&str; 5] = ["generated_at", "observed_at", "age_s", "turn_age_s", "since"];
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !TIMES.contains(&key.as_str()));
            map.values_mut().for_each(timeless);
        }
        Value::Array(list) => list.iter_mut().for_each(timeless),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn two_looks_at_the_same_state_print_the_same() {
    let env = lab();
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([
        env.record("alice", 1, "finished"),
        env.record("alice", 2, "error"),
        env.record("alice", 3, "killed"),
    ]);
    env.write_data(&data);
    for line in [
        "check alice",
        "check-simp alice",
        "caj",
        "explain 2 alice",
        "ls alice",
        "list-users",
        "notify list alice",
        "-lta",
        "-sa alice",
        "get-settings alice",
        "check-rules",
        "find",
        "board export",
        "-gmc",
        "daemon plan",
        "history",
        "-Ml",
        "doctor",
        "data get",
        "check-status",
        "sim list",
        "tldr",
        "help run",
        "man",
        "completions zsh",
        "init --from data.json",
    ] {
        let read = || {
            let mut document = env.tpu(&format!("{line} --json")).exits(0).json();
            timeless(&mut document);
            document.to_string()
        };
        assert_eq!(read(), read(), "tpu {line}");
    }
}
