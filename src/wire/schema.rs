//! The JSON Schema of every document, derived from the types; and the table that says which command prints
//! which.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::VERSION;
use super::board::{
    BoardDocument, NotesDocument, ReleasedDocument, ReservedDocument, SheetDocument,
    SheetImportDocument,
};
use super::classified::{LinePart, PatternsDocument, VerdictDocument};
use super::cleaned::{CleanedDocument, WouldCleanDocument};
use super::daemon::{
    AckDocument, MonitorStartedDocument, MonitorStatusDocument, MonitorStoppedDocument,
    PlanDocument,
};
use super::data::{BegunDocument, ChangedDataDocument, DataDocument, FoundDocument};
use super::doctor::{FindingsDocument, LockDocument, RestoredDocument};
use super::errors::ErrorDocument;
use super::events::{ClearedLogDocument, EventsDocument, NewsDocument};
use super::jobs::{
    ExplainDocument, FailedDocument, FinishedDocument, JobIdDocument, JobScriptDocument,
    LogsDocument, RuleDocument, RulesDocument, ShowDocument, SnapshotDocument, StageDirDocument,
    TagDocument, TagsDocument, ToldDocument, WaitDocument,
};
use super::launches::{
    KilledDocument, LaunchPlanDocument, LaunchedDocument, LaunchedGroupDocument, SuccessorDocument,
    SuccessorPlanDocument, SuccessorsDocument, WaitPlanDocument, WouldConcernDocument,
};
use super::pages::{
    DemoDocument, EmptyDocument, ManualDocument, ScreenDocument, ScriptDocument, TextDocument,
    WelcomeDocument,
};
use super::settings::{
    DroppedSettingsDocument, MonitorSettingDocument, MonitorSettingsDocument, NextNumberDocument,
    SettingDocument, SettingsDocument,
};
use super::targets::{
    DescribeDocument, DescribeMachinesDocument, ForgottenDocument, ImportDocument,
    RegisteredDocument, SimulatedEventDocument, SimulatedStoryDocument, SimulatedTargetDocument,
    TargetAliasDocument, TargetAliasesDocument, TargetFactDocument, TargetFactsDocument,
    TargetPlanDocument, TargetsDocument, WouldDocument,
};
use super::users::{
    AddedUserDocument, ConfigAliasDocument, ConfigAliasesDocument, DirDocument, DirsDocument,
    ForgottenConfigAliasDocument, ForgottenDirDocument, RemovedUserDocument, SwappedDirsDocument,
    UsersDocument,
};
use super::workers::{
    CopiedDocument, RecipeDocument, RecipePlanDocument, SshDocument, SweptDocument,
};

/// All that a command prints: a struct that the table of this module names, for only what the schema
/// describes may leave.
pub trait Document: Serialize + JsonSchema {}

/// Reads the table of documents: each with the commands that print it.
macro_rules! documents {
    ($($document:ty: $($command:literal),+;)+) => {
        $(impl Document for $document {})+

        fn described(book: &mut Book) {
            $(book.add::<$document>(&[$($command),+]);)+
        }
    };
}

documents! {
    SnapshotDocument<'_>: "check", "check-simp", "caj", "maj";
    ExplainDocument<'_>: "explain";
    WaitDocument<'_>: "wait";
    LaunchedDocument<'_>: "run";
    LaunchedGroupDocument<'_>: "run";
    LaunchPlanDocument<'_>: "run";
    WaitPlanDocument<'_>: "run";
    SuccessorDocument<'_>: "resume", "rerun";
    SuccessorsDocument<'_>: "resume", "rerun";
    SuccessorPlanDocument<'_>: "resume", "rerun";
    KilledDocument<'_>: "kill";
    WouldConcernDocument<'_>: "kill", "kill-window", "resume", "rerun";
    CleanedDocument<'_>: "kill-window", "clean", "clear-finished", "clear-error", "clear-all",
        "clear-zombie-windows", "clear-zombie-jobs";
    WouldCleanDocument<'_>: "clean", "clear-finished", "clear-error", "clear-all",
        "clear-zombie-windows", "clear-zombie-jobs";
    TagDocument<'_>: "add-tag";
    TagsDocument<'_>: "add-tag";
    JobIdDocument<'_>: "ignore-error", "upd-log", "attach";
    RuleDocument<'_>: "set-rule";
    RulesDocument<'_>: "check-rules";
    StageDirDocument<'_>: "get-stage-dir";
    ShowDocument<'_>: "show";
    ToldDocument<'_>: "show";
    JobScriptDocument<'_>: "script";
    LogsDocument<'_>: "logs";
    FinishedDocument<'_>: "finish-job";
    FailedDocument<'_>: "fail-job";
    EventsDocument<'_>: "history", "monitor-log";
    NewsDocument<'_>: "history";
    ClearedLogDocument: "clear-monitor-log";
    AddedUserDocument<'_>: "add-user";
    RemovedUserDocument<'_>: "del-user";
    UsersDocument<'_>: "list-users";
    DirsDocument<'_>: "set-cur", "set-dir", "ls";
    DirDocument<'_>: "get-dir";
    ForgottenDirDocument<'_>: "del-dir";
    SwappedDirsDocument<'_>: "swap-dir";
    ConfigAliasDocument<'_>: "add-config-alias";
    ConfigAliasesDocument<'_>: "show-config-alias";
    ForgottenConfigAliasDocument<'_>: "del-config-alias";
    SettingsDocument<'_>: "get-settings";
    SettingDocument<'_>: "set-settings";
    DroppedSettingsDocument<'_>: "reset-settings";
    NextNumberDocument<'_>: "reset-window-num";
    MonitorSettingDocument<'_>: "set-monitor-config";
    MonitorSettingsDocument: "get-monitor-config";
    TargetAliasDocument<'_>: "add-tpu-alias";
    TargetAliasesDocument<'_>: "list-tpu-aliases";
    RegisteredDocument<'_>: "register";
    ForgottenDocument<'_>: "del-registered";
    TargetFactsDocument<'_>: "check-status", "sim-list";
    TargetFactDocument<'_>: "apply", "applyy", "reapply", "delete", "start", "stop", "restart";
    TargetPlanDocument<'_>: "apply", "applyy", "reapply";
    DescribeDocument<'_>: "describe";
    DescribeMachinesDocument<'_>: "describe";
    TargetsDocument<'_>: "targets";
    ImportDocument<'_>: "targets";
    SimulatedTargetDocument<'_>: "sim";
    SimulatedEventDocument<'_>: "sim";
    SimulatedStoryDocument: "sim";
    BoardDocument<'_>: "find";
    ReleasedDocument<'_>: "release";
    ReservedDocument<'_>: "reserve";
    NotesDocument<'_>: "ssn", "asn";
    SheetDocument<'_>: "board-export";
    SheetImportDocument<'_>: "board-import";
    SshDocument<'_>: "ssh";
    CopiedDocument<'_>: "cp";
    SweptDocument<'_>: "kill-remote";
    RecipeDocument<'_>: "solve", "mount-disk", "set-wandb", "check-env", "test";
    RecipePlanDocument<'_>: "solve", "mount-disk", "set-wandb", "check-env", "test";
    MonitorStartedDocument<'_>: "daemon-start";
    MonitorStoppedDocument: "daemon-stop";
    MonitorStatusDocument: "daemon-status";
    PlanDocument<'_>: "daemon-plan";
    AckDocument: "ack";
    VerdictDocument<'_>: "classify";
    PatternsDocument: "classify";
    FindingsDocument<'_>: "doctor";
    RestoredDocument: "doctor";
    LockDocument: "doctor";
    BegunDocument<'_>: "init";
    FoundDocument<'_>: "init";
    DataDocument<'_>: "data-get";
    ChangedDataDocument<'_>: "data-set", "data-merge";
    TextDocument<'_>: "tldr", "help";
    ScriptDocument<'_>: "completions";
    ManualDocument<'_>: "man";
    DemoDocument: "demo";
    WelcomeDocument: "welcome";
    WouldDocument<'_>: "delete", "start", "stop", "restart", "ssh", "cp", "kill-remote", "daemon-start",
        "daemon-stop", "daemon-run", "sim", "launcher";
    ScreenDocument: "monitor";
    EmptyDocument: "ssh", "sim", "monitor", "demo-train", "launcher", "daemon-run";
    ErrorDocument<'_>: "error";
}

/// The documents as they are added, and which command prints which.
struct Book {
    generator: SchemaGenerator,
    documents: Map<String, Value>,
    commands: Map<String, Value>,
}

impl Book {
    fn add<D: Document>(&mut self, commands: &[&str]) {
        let name = D::schema_name().into_owned();
        let mut schema = D::json_schema(&mut self.generator);
        // What is not called for but is printed all the same stands around the members of each.
        let said = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut members = Map::new();
        members.insert("schema".to_owned(), json!({ "const": VERSION }));
        members.extend(said);
        if !commands.contains(&"error") && !members.contains_key("dry_run") {
            let meaning = json!({ "const": true, "description": "Nothing was changed" });
            members.insert("dry_run".to_owned(), meaning);
        }
        let mut required = vec![json!("schema")];
        required
            .extend(schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default());
        schema.insert("properties".to_owned(), Value::Object(members));
        schema.insert("required".to_owned(), Value::Array(required));
        let reference = json!({ "$ref": format!("#/$defs/{name}") });
        self.documents.insert(name, schema.to_value());
        for command in commands {
            let all = self.commands.entry(*command).or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|all| all.push(reference.clone()));
        }
    }
}

/// The schema of everything that `--json` prints: `#/$defs/COMMAND` is what a command prints.
pub fn schema() -> Value {
    let mut book = Book {
        generator: SchemaSettings::draft2020_12().for_serialize().into_generator(),
        documents: Map::new(),
        commands: Map::new(),
    };
    described(&mut book);
    let _line = book.generator.subschema_for::<LinePart<'_>>();
    let one_of = |(name, all): (String, Value)| match all.as_array().map(Vec::as_slice) {
        Some([one]) => (name, one.clone()),
        _ => (name, json!({ "anyOf": all })),
    };
    let mut parts = book.generator.take_definitions(false);
    parts.sort_keys();
    let commands: Map<String, Value> = book.commands.into_iter().map(one_of).collect();
    let any: Vec<Value> =
        commands.keys().map(|name| json!({ "$ref": format!("#/$defs/{name}") })).collect();
    let mut definitions = commands;
    definitions.extend(book.documents);
    definitions.extend(parts);
    let mut whole = Schema::try_from(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tpu --json",
        "description": "What each command prints with --json: one document on stdout, and nothing else. \
            `#/$defs/COMMAND` is the document of a command (`data-set` is `tpu data set`), `#/$defs/error` what \
            stands on stderr when it fails. Within schema 1 members may be added, and none is taken away.",
        "anyOf": any,
        "$defs": definitions,
    }))
    .unwrap_or_default();
    RecursiveTransform(without_widths).transform(&mut whole);
    whole.to_value()
}

/// How wide a number is in our memory is nobody's business.
fn without_widths(schema: &mut Schema) {
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format != "date-time") {
        schema.remove("format");
    }
}
