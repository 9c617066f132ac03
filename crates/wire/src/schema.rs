//! The table that says which command prints which document. Of it and of the types `tests/cli/schema.rs` makes
//! the JSON Schema of all of them.

use schemars::JsonSchema;
use serde::Serialize;

use super::archive::{ArchiveDocument, ArchivedJobDocument, RestoredJobsDocument};
use super::board::{
    BoardDocument, NotesDocument, ReleasedDocument, ReservedDocument, SheetDocument,
    SheetImportDocument,
};
use super::checkpoints::{
    CheckpointsDocument, CopiedCheckpointsDocument, PrunedDocument, StorageDocument,
};
use super::classified::{PatternsDocument, VerdictDocument};
use super::cleaned::{CleanedDocument, WouldCleanDocument};
use super::cloudmesh::{
    CloudmeshDocument, CmsJobsChangedDocument, CmsJobsDocument, CmsServiceDocument, JobsetDocument,
    PolicyDocument, TemplateDocument,
};
use super::curves::CurveDocument;
use super::daemon::{
    AckDocument, DaemonUnitDocument, MonitorStartedDocument, MonitorStatusDocument,
    MonitorStoppedDocument, PlanDocument,
};
use super::data::{BegunDocument, ChangedDataDocument, DataDocument, FoundDocument};
use super::disk::DiskDocument;
use super::doctor::{FindingsDocument, LockDocument, RestoredDocument};
use super::errors::ErrorDocument;
use super::events::{ClearedLogDocument, EventsDocument, NewsDocument};
use super::files::{CopiedFilesDocument, FilesDocument};
use super::hosts::{
    HostsAddedDocument, HostsAskedDocument, HostsChangedDocument, HostsDocument, HostsSetDocument,
    PoolsDocument,
};
use super::jobfile::{
    ConvertedDocument, FormatSchemaDocument, SecretDocument, SecretsDocument, StartedWithDocument,
};
use super::jobman::{JobmanDoneDocument, JobmanJobsDocument, JobmanTasksDocument};
use super::jobs::{
    ExplainDocument, FailedDocument, FinishedDocument, JobIdDocument, JobScriptDocument,
    JobsPageDocument, LogsDocument, LogsPieceDocument, RuleDocument, RulesDocument, ShowDocument,
    SnapshotDocument, StageDirDocument, TagDocument, TagsDocument, ToldDocument, WaitDocument,
};
use super::launches::{
    KilledDocument, LaunchPlanDocument, LaunchedDocument, LaunchedGroupDocument, SuccessorDocument,
    SuccessorPlanDocument, SuccessorsDocument, WaitPlanDocument, WouldConcernDocument,
};
use super::leaving::{ExportDocument, UninstallDocument};
use super::money::{BillingDocument, QuotaDocument};
use super::notices::{NotifyDocument, NotifyTestDocument};
use super::pages::{
    DemoDocument, EmptyDocument, KindDocument, ManualDocument, ScreenDocument, ScriptDocument,
    ServingDocument, TextDocument, WelcomeDocument,
};
use super::queue::{
    QueueChangedDocument, QueueDocument, QueueEntryDocument, QueuesDocument, SubmittedDocument,
    WaitingChangedDocument,
};
use super::settings::{
    DroppedSettingsDocument, MonitorSettingDocument, MonitorSettingsDocument, NextNumberDocument,
    SettingDocument, SettingsDocument,
};
use super::stats::StatsDocument;
use super::sweep::SweepDocument;
use super::targets::{
    DescribeDocument, DescribeMachinesDocument, ForgottenDocument, ImportDocument,
    RegisteredDocument, SimulatedEventDocument, SimulatedStoryDocument, SimulatedTargetDocument,
    TargetAliasDocument, TargetAliasesDocument, TargetBegunDocument, TargetFactDocument,
    TargetFactsDocument, TargetPlanDocument, TargetsDocument, WouldDocument,
};
use super::tokens::{NewTokenDocument, RevokedTokenDocument, SessionDocument, TokensDocument};
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

/// Takes in one document after the other.
pub trait Book {
    /// A document, and the commands that print it.
    fn add<D: Document>(&mut self, commands: &[&str]);
}

/// Reads the table of documents: each with the commands that print it.
macro_rules! table {
    ($($document:ty: $($command:literal),+;)+) => {
        $(impl Document for $document {})+

        /// Adds every document to the book.
        pub fn described(book: &mut impl Book) {
            $(book.add::<$document>(&[$($command),+]);)+
        }
    };
}

table! {
    SnapshotDocument<'_>: "check", "check-simp", "caj", "maj";
    ExplainDocument<'_>: "explain";
    WaitDocument<'_>: "wait", "jobman";
    LaunchedDocument<'_>: "run";
    LaunchedGroupDocument<'_>: "run";
    LaunchPlanDocument<'_>: "run";
    WaitPlanDocument<'_>: "run";
    SubmittedDocument<'_>: "submit", "queue", "jobman";
    QueueDocument<'_>: "queue";
    SweepDocument<'_>: "sweep";
    QueueChangedDocument<'_>: "queue", "cms";
    QueueEntryDocument<'_>: "explain";
    WaitingChangedDocument<'_>: "queue", "hold", "unhold", "dequeue", "requeue", "priority", "kill", "cms";
    SuccessorDocument<'_>: "resume", "rerun";
    SuccessorsDocument<'_>: "resume", "rerun";
    SuccessorPlanDocument<'_>: "resume", "rerun", "jobman";
    KilledDocument<'_>: "kill", "cms";
    WouldConcernDocument<'_>: "kill", "kill-window", "resume", "rerun", "cms";
    CleanedDocument<'_>: "kill-window", "clean", "clear-finished", "clear-error", "clear-all",
        "clear-zombie-windows", "clear-zombie-jobs";
    WouldCleanDocument<'_>: "clean", "clear-finished", "clear-error", "clear-all",
        "clear-zombie-windows", "clear-zombie-jobs";
    TagDocument<'_>: "add-tag";
    TagsDocument<'_>: "add-tag";
    JobIdDocument<'_>: "ignore-error", "upd-log", "attach", "unhold";
    RuleDocument<'_>: "set-rule";
    RulesDocument<'_>: "check-rules";
    StageDirDocument<'_>: "get-stage-dir";
    ShowDocument<'_>: "show";
    ToldDocument<'_>: "show";
    KindDocument<'_>: "of-kind";
    JobScriptDocument<'_>: "script";
    LogsDocument<'_>: "logs", "archive";
    FilesDocument<'_>: "files";
    CopiedFilesDocument<'_>: "files";
    StatsDocument<'_>: "stats";
    QuotaDocument<'_>: "quota", "jobman";
    BillingDocument<'_>: "billing", "jobman";
    ArchiveDocument<'_>: "archive";
    ArchivedJobDocument<'_>: "archive";
    RestoredJobsDocument<'_>: "archive";
    CheckpointsDocument<'_>: "checkpoints";
    CopiedCheckpointsDocument: "checkpoints";
    PrunedDocument: "checkpoints";
    StorageDocument<'_>: "storage";
    DiskDocument<'_>: "disk";
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
    SettingDocument<'_>: "set-settings", "cms";
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
    CloudmeshDocument<'_>: "import";
    ConvertedDocument<'_>: "convert";
    FormatSchemaDocument: "schema";
    NotifyDocument<'_>: "notify";
    NotifyTestDocument<'_>: "notify";
    SecretsDocument<'_>: "secrets";
    SecretDocument<'_>: "secrets";
    TokensDocument<'_>: "token";
    NewTokenDocument<'_>: "token";
    RevokedTokenDocument<'_>: "token";
    CmsJobsChangedDocument<'_>: "cms";
    CmsJobsDocument<'_>: "cms";
    JobsetDocument<'_>: "cms";
    CmsServiceDocument<'_>: "cms";
    PolicyDocument<'_>: "cms";
    TemplateDocument<'_>: "cms";
    HostsAddedDocument<'_>: "hosts", "cms";
    HostsAskedDocument<'_>: "hosts";
    HostsChangedDocument<'_>: "hosts", "pools", "cms";
    HostsDocument<'_>: "hosts", "cms";
    HostsSetDocument<'_>: "hosts", "pools", "cms";
    PoolsDocument<'_>: "pools", "cms";
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
    MonitorStartedDocument<'_>: "daemon-start", "daemon-restart";
    MonitorStoppedDocument: "daemon-stop";
    MonitorStatusDocument<'_>: "daemon-status";
    DaemonUnitDocument<'_>: "daemon-install", "daemon-uninstall";
    PlanDocument<'_>: "daemon-plan";
    AckDocument<'_>: "ack";
    VerdictDocument<'_>: "classify";
    PatternsDocument: "classify";
    FindingsDocument<'_>: "doctor";
    RestoredDocument: "doctor";
    LockDocument: "doctor";
    BegunDocument<'_>: "init";
    FoundDocument<'_>: "init";
    UninstallDocument<'_>: "uninstall";
    ExportDocument<'_>: "export";
    DataDocument<'_>: "data-get";
    ChangedDataDocument<'_>: "data-set", "data-merge";
    JobmanJobsDocument<'_>: "jobman";
    JobmanDoneDocument: "jobman";
    JobmanTasksDocument<'_>: "jobman";
    TextDocument<'_>: "tldr", "help", "cms";
    ScriptDocument<'_>: "completions";
    ManualDocument<'_>: "man";
    DemoDocument: "demo";
    WelcomeDocument: "welcome";
    WouldDocument<'_>: "delete", "start", "stop", "restart", "ssh", "cp", "kill-remote", "daemon-start",
        "daemon-stop", "daemon-restart", "daemon-run", "export", "sim", "launcher", "cms", "jobman";
    ScreenDocument: "monitor";
    ServingDocument<'_>: "serve";
    SessionDocument<'_>: "serve";
    JobsPageDocument<'_>: "serve";
    QueuesDocument<'_>: "serve";
    LogsPieceDocument<'_>: "serve";
    CurveDocument<'_>: "serve";
    StartedWithDocument<'_>: "serve";
    TargetBegunDocument<'_>: "serve";
    EmptyDocument: "ssh", "sim", "monitor", "demo-train", "launcher", "daemon-run", "jobman";
    ErrorDocument<'_>: "error";
}
