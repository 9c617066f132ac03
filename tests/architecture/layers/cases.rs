//! Small sources that break one rule each, with the message, and ones that break none.

use std::collections::BTreeMap;

use super::rules;
use super::shape;
use super::table::MAX_LINES;

/// What the rules say about one file, one line per finding.
fn findings(path: &str, body: &str) -> String {
    let mut found = Vec::new();
    drop(rules::check_file(path, &format!("//! A case.\n{body}"), false, &mut found));
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn fails(path: &str, body: &str, what: &str) {
    let found = findings(path, body);
    assert_eq!(found.lines().count(), 1, "one finding for {path}:\n{body}\nbut:\n{found}");
    assert!(found.contains(what), "expected `{what}` for {path}:\n{body}\nbut:\n{found}");
}

#[track_caller]
fn passes(path: &str, body: &str) {
    let found = findings(path, body);
    assert!(found.is_empty(), "nothing is wrong with {path}:\n{body}\nbut:\n{found}");
}

#[test]
fn a_message_names_file_line_what_and_rule() {
    assert_eq!(
        findings("src/plan/decide.rs", "\nuse crate::store::Store;"),
        "src/plan/decide.rs:3: uses `crate::store::Store`; rule: `plan` may use of this crate: \
         model, text"
    );
    assert_eq!(
        findings("src/text.rs", "fn f() { std::fs::read(\"x\").ok(); }"),
        "src/text.rs:2: uses `std::fs::read`; rule: `text` is pure: contents of files come in as \
         arguments"
    );
}

#[test]
fn arrows_never_point_up_or_sideways() {
    for (path, body, what) in [
        ("src/text.rs", "use crate::model::ids;", "`text` may use of this crate: nothing"),
        ("src/model/job.rs", "use crate::plan::Decision;", "`crate::plan::Decision`"),
        ("src/plan/decide.rs", "use crate::classify::classify;", "`crate::classify::classify`"),
        ("src/classify/mod.rs", "use crate::plan::x;", "`classify` may use of this crate"),
        ("src/sys/proc.rs", "use crate::text::cut;", "`sys` may use of this crate: model"),
        ("src/store/txn.rs", "use crate::tmux::Tmux;", "`store` may use of this crate"),
        ("src/tmux/mod.rs", "use crate::ops::Ctx;", "`crate::ops::Ctx`"),
        ("src/remote/ssh.rs", "use crate::provider::Provider;", "`crate::provider::Provider`"),
        ("src/ops/run.rs", "use crate::cli::args;", "`ops` may use of this crate"),
        ("src/screen/mod.rs", "use crate::tmux::Tmux;", "`screen` may use of this crate"),
        ("src/daemon/mod.rs", "use crate::demo::Story;", "`daemon` may use of this crate"),
        ("src/demo/mod.rs", "use crate::cli::main;", "`demo` may use of this crate"),
        ("src/cli/run.rs", "use crate::screen::start;", "`cli` may use of this crate"),
        ("src/provider/retry.rs", "use crate::store::atomic::replace;", "`crate::store"),
        ("src/provider/mod.rs", "use crate::tmux::Tmux;", "`provider` may use of this crate"),
        ("src/provider/mod.rs", "use crate::lab::sim;", "only `kinds` knows a kind"),
        ("src/lab/sim/mod.rs", "use crate::plan::decide;", "`lab` may use of this crate"),
        ("src/slurm/engine.rs", "use crate::kubernetes::api;", "`slurm` may use of this crate"),
        ("src/gcp/mod.rs", "use crate::lab::sim;", "`gcp` may use of this crate"),
        ("src/kinds/mod.rs", "use crate::ops::Ctx;", "`kinds` may use of this crate"),
        ("src/ops/run.rs", "use crate::wire::jobs::JobPart;", "`ops` may use of this crate"),
        ("src/wire/jobs.rs", "use crate::store::Store;", "`wire` may use of this crate: ops"),
        ("src/main.rs", "fn main() { tpu::daemon::run(); }", "main.rs knows only `tpu::cli`"),
        ("src/lib.rs", "pub mod text;\npub use text::cut;", "lib.rs is the map"),
        ("src/helpers/mod.rs", "", "`helpers` is no layer"),
        ("src/ops/run.rs", "use crate::helpers::x;", "`helpers` is no layer"),
    ] {
        fails(path, body, what);
    }
}

#[test]
fn the_ways_in_put_no_json_together() {
    for (path, body) in [
        ("src/cli/commands/run.rs", "fn f() { json!({ \"a\": 1 }); }"),
        ("src/cli/print/mod.rs", "fn f() { serde_json::json!({}); }"),
        ("src/daemon/mod.rs", "fn f() { let x = vec![json!(1)]; }"),
    ] {
        fails(path, body, "a document of `wire`");
    }
    passes("src/wire/schema.rs", "fn f() { json!({}); }");
    passes("src/cli/commands/data.rs", "fn f() { serde_json::Value::from(1); }");
}

#[test]
fn kinds_of_target_do_not_know_each_other() {
    for (path, body) in [
        ("src/kinds/ssh.rs", "use crate::kinds::local::Local;"),
        ("src/kinds/ssh.rs", "use super::local;"),
        ("src/kinds/local.rs", "fn f() { crate::kinds::ssh::open(); }"),
        ("src/kinds/ssh.rs", "use super::*;"),
    ] {
        fails(path, body, "kinds of target do not know each other");
    }
    passes("src/kinds/mod.rs", "fn f() { crate::kinds::ssh::open(); }");
    passes("src/kinds/ssh.rs", "use crate::kinds::{Kind, Kinds};\nuse super::Door;");
    passes("src/lab/sim/mod.rs", "use crate::gcp::states;");
}

#[test]
fn nobody_else_knows_a_kind_by_its_name() {
    let rule = "only `kinds` knows a kind or a provider by its name";
    for (path, body) in [
        ("src/ops/launch.rs", "use crate::kinds::ssh::Ssh;"),
        ("src/ops/launch.rs", "use crate::kinds;\nfn f() { kinds::ssh::open(); }"),
        (
            "src/ops/a.rs",
            "use crate::model::target::TargetKind;\nfn f() -> X { TargetKind::LOCAL }",
        ),
        ("src/plan/a.rs", "fn f(k: X) -> bool { k == crate::model::target::TargetKind::SSH }"),
        (
            "src/screen/view/a.rs",
            "use crate::model::target::TargetKind as K;\nfn f(k: K) -> bool { matches!(k, K::TPU) }",
        ),
        (
            "src/ops/a.rs",
            "use crate::model::target::ProviderName;\nfn f() -> X { ProviderName::of(\"sim\") }",
        ),
    ] {
        fails(path, body, rule);
    }
    passes("src/ops/a.rs", "use crate::kinds::{Kind, Kinds};\nfn f(k: &Kinds) { k.of(t) }");
    passes("src/ops/a.rs", "fn f(t: X) -> X { crate::model::target::TargetKind::new(t) }");
    passes("src/kinds/mod.rs", "fn f() { crate::model::target::TargetKind::TPU; }");
    passes("src/simulator.rs", "use crate::lab::sim;");
}

#[test]
fn every_way_to_write_a_path_is_seen() {
    for body in [
        "use crate::store::Store;",
        "use crate::{model::{ids, job}, store::{txn}};",
        "use crate::store as disk;\nfn f() { disk::open(); }",
        "use super::super::store::Store;",
        "use super::{super::store};",
        "use self::super::super::store::Store;",
        "fn f() -> crate::store::Store { g() }",
        "fn f() { crate::store::open::<u8>() }",
        "fn f(x: &dyn super::super::store::Store) {}",
        "impl crate::store::Store for X {}",
        "mod inner { use super::super::super::store::Store; }",
        "fn f() { use crate::store::Store; }",
        "fn f() { format!(\"{}\", crate::store::path()); }",
        "macro_rules! m { () => { $crate::store::open() }; }",
        "macro_rules! m { () => { use $crate::{model::ids, store::Store}; }; }",
        "#[derive(X)]\n#[serde(with = \"crate::store::text\")]\nstruct A;",
        "#[clap(value_parser = crate::store::parse)]\nstruct A;",
        "pub(in crate::store) struct A;",
        "type A = Vec<Option<crate::store::Store>>;",
        "#[cfg(any(test, unix))]\nuse crate::store::Store;",
        "#[cfg(not(test))]\nuse crate::store::Store;",
        "#[cfg(test)]\nmod tests { use crate::store::Store; }",
    ] {
        fails("src/plan/decide.rs", body, "`crate::store");
    }
    let root = "name the layer";
    fails("src/plan/decide.rs", "use crate::*;", root);
    fails("src/plan/decide.rs", "use super::super::*;", root);
    fails("src/text.rs", "use super::*;", root);
    fails("src/plan/decide.rs", "extern crate self as me;", root);
    let found = findings("src/plan/decide.rs", "use crate as me;\nfn f() { me::store::open(); }");
    assert!(found.contains(root) && found.contains("`crate::store::open`"), "{found}");
}

#[test]
fn pure_modules_have_no_door_to_the_world() {
    for (body, what) in [
        ("use std::fs;", "`std::fs`"),
        ("use std::fs as disk;\nfn f() { disk::read(\"x\"); }", "`std::fs`"),
        ("use std::{fmt, process::{Command}};", "`std::process::Command`"),
        ("fn f() { ::std::net::TcpStream::connect(\"x\"); }", "`std::net::TcpStream::connect`"),
        ("fn f(a: core::net::IpAddr) {}", "`core::net::IpAddr`"),
        ("fn f() { std::env::var(\"HOME\"); }", "`std::env::var`"),
        ("use std::time::{Duration, Instant};", "`std::time::Instant`"),
        ("use std::time::SystemTime as Now;", "`std::time::SystemTime`"),
        ("use std::time::*;", "imports all of `std::time::*`"),
        ("use std::time as t;", "imports all of `std::time`"),
        ("extern crate std as s;", "imports all of `std`"),
        ("fn f() { std::thread::sleep(d); }", "`std::thread::sleep`"),
        ("macro_rules! m { () => { std::thread::yield_now() }; }", "`std::thread::yield_now`"),
        ("macro_rules! m { () => { use std::{fmt, fs}; }; }", "`std::fs`"),
        ("fn f() { assert!(std::fs::exists(\"x\")); }", "`std::fs::exists`"),
        ("use jiff::Timestamp;\nfn f() { Timestamp::now(); }", "`jiff::Timestamp::now`"),
        ("use ratatui::crossterm::execute;", "`ratatui::crossterm::execute`"),
        ("fn f() { tmux_interface::Tmux::new(); }", "`tmux_interface::Tmux::new`"),
        ("fn f(p: &Path) -> bool { p.exists() }", "`.exists()`, which asks the file system"),
    ] {
        for path in ["src/model/a.rs", "src/screen/view/rows.rs", "src/screen/update.rs"] {
            fails(path, body, what);
        }
        passes("src/sys/door.rs", body);
    }
    let update = "src/screen/update/jobs.rs";
    fails(update, "use crate::sys::clock::Clock;", "`screen::update` is pure");
    fails(update, "use super::super::super::tmux::Tmux;", "`crate::tmux::Tmux`");
}

#[test]
fn use_cases_wait_for_threads_as_a_simulation_plays_them() {
    let body = "fn f(said: Receiver<u8>) { loop { drop(said.recv_timeout(left)); } }";
    for path in ["src/ops/observe/fleet.rs", "src/ops/act/board/rooms.rs"] {
        fails(path, body, "calls `.recv_timeout()`");
    }
    for path in ["src/sys/threads.rs", "src/screen/run.rs", "src/ops/act/workers/print.rs"] {
        passes(path, body);
    }
}

#[test]
fn what_is_allowed_passes() {
    for (path, body) in [
        ("src/plan/decide.rs", "use crate::model::{facts::*, job::Job};\nuse crate::text;"),
        ("src/plan/decide.rs", "use super::budget;\nuse super::*;\nfn f() { budget::left(); }"),
        ("src/plan/decide.rs", "use std::time::Duration;\nuse std::collections::BTreeMap;"),
        ("src/plan/decide.rs", "use std::io::Write;\nuse std::os::unix::ffi::OsStrExt;"),
        ("src/plan/decide.rs", "mod store { pub fn f() {} }\nfn g() { store::f(); }"),
        ("src/plan/decide.rs", "pub(crate) fn f() {}\npub(super) fn g() {}"),
        ("src/plan/decide.rs", "// use crate::store; std::fs::read\n/* std::env::var */"),
        ("src/plan/decide.rs", "/// See [`crate::store`] and `std::fs`.\nfn f() {}"),
        ("src/plan/decide.rs", "const A: &str = \"use crate::store; std::fs::read\";"),
        ("src/plan/decide.rs", "fn f() { format!(\"std::fs::read {}\", 1); }"),
        ("src/plan/decide.rs", "fn f(fs: u8, store: &[u8]) { fs.to_string(); store.len(); }"),
        ("src/plan/decide.rs", "#[cfg(test)]\nmod tests { use super::*; use std::fs; }"),
        ("src/plan/decide.rs", "#[cfg(all(test, unix))]\nmod t { fn f() { std::env::vars(); } }"),
        ("src/model/time.rs", "use jiff::{Timestamp, tz::TimeZone};"),
        ("src/sys/clock.rs", "use std::time::Instant;\nuse crate::model::time::Timestamp;"),
        ("src/lab/sim/fleet.rs", "use crate::store::atomic::replace;"),
        ("src/cli/dispatch.rs", "use crate::daemon;"),
        ("src/cli/serve.rs", "use crate::api;"),
        ("src/cli/mod.rs", "mod monitor;\nuse self::monitor::Arguments;"),
        ("src/daemon/turn.rs", "#[cfg(test)]\nmod tests { use crate::tmux::oneshot::OneShot; }"),
        ("src/main.rs", "fn main() -> std::process::ExitCode { tpu::cli::main() }"),
        ("src/lib.rs", "pub mod text;\npub mod model;"),
        ("tests/kill.rs", "use tpu_system::store::Store;\nuse std::fs;"),
    ] {
        passes(path, body);
    }
    // A file whose `mod` is under `#[cfg(test)]` may touch the world, and still not look up.
    let tests = |body: &str| {
        let mut found = Vec::new();
        drop(rules::check_file("src/plan/tests.rs", body, true, &mut found));
        found.len()
    };
    assert_eq!(tests("//! Cases.\nuse std::fs;"), 0);
    assert_eq!(tests("//! Cases.\nuse crate::ops::Ctx;"), 1);
}

#[test]
fn files_have_a_header_a_size_and_no_excuses() {
    let mut found = Vec::new();
    drop(rules::check_file("tests/a.rs", "// A comment.\nfn f() {}\n", false, &mut found));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].to_string().starts_with("tests/a.rs:1: does not open with `//!`"));

    passes("tests/a.rs", &"\n".repeat(MAX_LINES - 1));
    fails("tests/a.rs", &"\n".repeat(MAX_LINES), "has 601 lines");
    fails("tests/a.rs", "fn f( {", "does not parse");

    let allow = "use #[expect(lint";
    fails("src/sys/a.rs", "#[allow(dead_code)]\nfn f() {}", allow);
    fails("src/sys/a.rs", "#![allow(dead_code)]", allow);
    fails("tests/a.rs", "fn f() { #[allow(unused)]\nlet x = 1; }", allow);
    fails("tests/a.rs", "#[cfg_attr(unix, allow(dead_code))]\nfn f() {}", allow);
    fails("tests/a.rs", "m! { #[allow(dead_code)] fn f() {} }", allow);
    fails("tests/a.rs", "#[test]\n#[ignore]\nfn f() {}", "`#[ignore]`");
    fails("tests/a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}", "`#[ignore]`");
    fails("tests/a.rs", "proptest! { #[test] #[ignore] fn f(x in 0..9) {} }", "`#[ignore]`");
    passes("tests/a.rs", "#[expect(dead_code, reason = \"a case\")]\nfn f() {}");
    passes("tests/a.rs", "const A: &str = \"#[allow(x)] #[ignore]\"; // #[allow(x)]");

    fails("src/sys/a.rs", "#[path = \"other.rs\"]\nmod b;", "`#[path]`");
    fails("src/plan/a.rs", "include!(\"other.rs\");", "`include!`");
    passes("src/plan/a.rs", "const A: &str = include_str!(\"a.toml\");");
}

#[test]
fn a_file_that_no_mod_declares_is_found() {
    let tree = |files: &[(&str, &str)]| {
        let files: BTreeMap<String, String> = files
            .iter()
            .map(|(path, body)| ((*path).to_owned(), format!("//! A case.\n{body}")))
            .collect();
        rules::check_tree(&files).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let whole = [
        ("src/lib.rs", "pub mod plan;"),
        ("src/plan/mod.rs", "mod decide;\n#[cfg(test)]\nmod cases;\nmod inline { mod deep; }"),
        ("src/plan/decide.rs", "mod below;"),
        ("src/plan/decide/below.rs", ""),
        ("src/plan/inline/deep.rs", ""),
        ("src/plan/cases.rs", "use std::fs;"),
        ("tests/main.rs", "mod common;\nmod kill;"),
        ("tests/common/mod.rs", "pub mod wait;"),
        ("tests/common/wait.rs", ""),
        ("tests/kill.rs", ""),
        ("benches/start.rs", ""),
    ];
    assert_eq!(tree(&whole), "");
    for stray in ["tests/lost.rs", "src/plan/lost.rs", "tests/common/lost.rs"] {
        let mut files = whole.to_vec();
        files.push((stray, ""));
        let found = tree(&files);
        assert!(found.starts_with(&format!("{stray}:1: no `mod` declares")), "{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
    // Only tests may touch the world: the same file under a plain `mod` may not.
    let mut files = whole.to_vec();
    files[1].1 = "mod decide;\nmod cases;\nmod inline { mod deep; }";
    assert!(tree(&files).contains("src/plan/cases.rs:2: uses `std::fs`"), "{}", tree(&files));
    // A bench keeps the shape of files too.
    let mut files = whole.to_vec();
    files[10].1 = "#[allow(x)]\nfn f() {}";
    assert!(tree(&files).contains("benches/start.rs:2: has `#[allow]`"), "{}", tree(&files));
}

#[test]
fn circles_storeys_and_homonyms_are_found() {
    let tree = |files: &[(&str, &str)]| {
        let files = files
            .iter()
            .map(|(path, body)| ((*path).to_owned(), format!("//! A case.\n{body}")))
            .collect();
        shape::check(&files, BTreeMap::new())
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let circle = [
        ("src/plan/mod.rs", "mod a;\nmod b;\nmod c;"),
        ("src/plan/a.rs", "use super::b::f;"),
        ("src/plan/b.rs", "use crate::plan::c::deep::f;"),
        ("src/plan/c/mod.rs", "mod deep;"),
        ("src/plan/c/deep.rs", "pub(super) fn f() { crate::plan::a::f(); }"),
    ];
    let found = tree(&circle);
    assert!(
        found.starts_with("src/plan/a.rs:2: closes a circle in `plan`: a -> b -> c -> a"),
        "{found}"
    );
    assert_eq!(found.lines().count(), 1, "each circle is told once:\n{found}");
    // What only tests use, and what a folder's own file uses of it, closes none.
    let mut files = circle.to_vec();
    files[4].1 = "pub(super) fn f() {}\n#[cfg(test)]\nmod tests { use crate::plan::a; }";
    assert_eq!(tree(&files), "");
    files[0].1 = "mod a;\nuse a::g;\npub fn f() { g(); }";
    files[1].1 = "pub(super) fn g() { super::f(); }";
    assert_eq!(tree(&files), "");

    let upward = [
        ("src/ops/mod.rs", "pub mod base;\npub mod act;\npub mod other;"),
        ("src/ops/base/mod.rs", "pub mod error;"),
        ("src/ops/base/error.rs", "use crate::ops::act::kill::f;"),
        ("src/ops/act/mod.rs", "pub mod kill;"),
        ("src/ops/act/kill.rs", "pub fn f() {}"),
        ("src/ops/other/mod.rs", "pub fn g() { crate::ops::act::kill::f(); }"),
    ];
    let found = tree(&upward);
    let what = "src/ops/base/error.rs:2: `ops::base` uses `ops::act`, which is above it";
    assert!(found.starts_with(what), "{found}");
    assert_eq!(found.lines().count(), 1, "what is named in no list may use all others:\n{found}");
    let mut files = upward.to_vec();
    files[2].1 = "";
    files[4].1 = "pub fn f() { crate::ops::other::g(); }";
    files[5].1 = "pub fn g() {}";
    assert!(tree(&files).contains("`ops::act` uses `ops::other`"), "{}", tree(&files));

    let twice = [("src/plan/a.rs", "pub struct Same;"), ("src/model/b.rs", "pub enum Same { A }")];
    assert!(tree(&twice).contains("`Same` is also a type of"), "{}", tree(&twice));
    let private = [("src/plan/a.rs", "pub struct Same;"), ("src/model/b.rs", "struct Same;")];
    assert_eq!(tree(&private), "");
}
