//! `tpu`: launches jobs in tmux windows, tells by evidence how they are, and brings them back.
//!
//! A pure core, effects at the rim. Arrows never point up (`tests/architecture/layers.rs` holds that):
//!
//! ```text
//!   cli      screen       daemon      demo     ways in, no logic of their own
//!   wire                                       the documents that leave: JSON, and its schema
//!   ops                                        use cases: one verb, one file
//!   kinds                                      the kinds of target, each a folder
//!   provider                                   contract: machines that come and go
//!   runner                                     contract: what runs attempts; tmux windows
//!   effects                                    what one request may touch, and on whose behalf
//!   store    tmux    remote    post            the world, each behind one small door
//!   sys                                        clock, processes, environment
//!   jobfile                                    pure: files of other tools -> values
//!   plan     classify                          pure: facts -> decisions, text -> verdict
//!   model                                      pure: users, jobs, targets, rules, facts
//!   text                                       pure: ANSI, width, escaping
//! ```
//!
//! Where things go:
//! - a **command**: what it does in `ops/`, its words in `cli/commands/`, its arguments in `cli/args.rs`,
//!   one line in `cli/dispatch.rs` (the compiler asks for it); an old spelling in `cli/legacy.rs`.
//! - a **document** of `--json`: a struct in `wire/` and its line in the table of `wire/schema.rs`; then `./x schema`.
//! - a **route** of the API: a function in `api/`, in the file of its resource, with its entry in the list there.
//! - a **pattern**: a `[[rule]]` with examples in `assets/patterns.toml`, no Rust. A new *class* of
//!   failure is a variant of `model::facts::ErrorKind` and a row of each table in `model/rules.rs`.
//! - a **column** of the screen: an entry of `screen/view/columns.rs`, if `model::view::JobView` holds the
//!   value; else also a field there, filled in `ops/snapshot/`.
//! - a **kind of target**: a folder or a file in `kinds/` that implements `KindOfTarget`, and its line in
//!   `kinds/mod.rs`. Who makes its machines implements `provider::Provider` in the same folder.
//! - a **runner** (what starts attempts and says how they are): a type that implements `runner::Runner`, opened by
//!   `KindOfTarget::runner` of its kind, and a line in `tests/runner/contract.rs`.
//! - a **way to workers**: a file in `remote/` that implements `Remote`, for the kinds that go it.
//!
//! Words used everywhere: the **monitor** is the full screen, **the daemon** the program in the background
//! (`daemon/`, `tpu daemon`). An **attempt** is one record in data.json; attempts that continue one another
//! are a **lineage**, the newest is its **leaf**. A **group** is several jobs of one specification under one number;
//! each of its **members** is a lineage, called `12_3`. A **launch** is one start of an attempt, known by its
//! token. A **look** reads all facts once and writes nothing; a **turn** is one round of the daemon. A
//! **place** is the host, account and tmux server where a window lives. The **original** is the tool
//! whose data.json and spellings are kept.

// Pure: no files, processes, sockets, environment or clock.
pub mod text;

pub mod model;

pub mod classify;
pub mod jobfile;
pub mod plan;

// Effects: each knows its own corner of the world, and none knows another.
pub mod sys;

pub mod effects;
pub mod post;
pub mod remote;
pub mod store;
pub mod tmux;

// The contracts of machines and of what runs on them, and the kinds of target that fulfil them.
pub mod provider;
pub mod runner;

pub mod kinds;

// Use cases, and the ways in.
pub mod ops;

// Pure again: what of it leaves as JSON.
pub mod wire;

pub mod api;
pub mod cli;
pub mod daemon;
pub mod demo;
pub mod screen;
