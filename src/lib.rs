//! `tpu`: runs jobs here and elsewhere, shows by evidence how they are, and restarts them.
//!
//! This is the root of a workspace: the ways in that need everything, and the list of the kinds of target. The rest is in
//! `crates/`, each with a front page of its own. Arrows never point up (Cargo and `tests/architecture` hold that):
//!
//! ```text
//!   tpu: cli daemon demo      the program; knows all of the below
//!   tpu-screen  tpu-api       ways in, no logic of their own
//!   tpu-wire                  the documents that leave: JSON, and its schema
//!   tpu-ops                   use cases: one verb, one file
//!   tpu-lab                   simulated fleet and emulators
//!   tpu-gcp  tpu-kubernetes  tpu-slurm      one kind of target each
//!   tpu-engine                contracts: kinds of target, providers, runners; the kinds local and ssh
//!   tpu-system                the world, each part behind one small door
//!   tpu-jobfile               pure: files of jobs -> values
//!   tpu-core                  pure: text, model, classify, plan
//! ```
//!
//! CONTRIBUTING.md says where a command, a document, a route, a pattern, a column or a kind of target goes.
//!
//! Words used everywhere: the **monitor** is the full screen, **the daemon** the program in the background
//! (`daemon/`, `tpu daemon`). An **attempt** is one record in data.json; attempts that continue one another
//! are a **lineage**, the newest is its **leaf**. A **group** is several jobs of one specification under one number;
//! each of its **members** is a lineage, called `12_3`. A **launch** is one start of an attempt, known by its
//! token. A **look** reads all facts once and writes nothing; a **turn** is one round of the daemon. A
//! **place** is the host, account and tmux server where a window lives. The **original** is the tool
//! whose data.json and spellings are kept.

pub mod built_in;
pub mod cli;
pub mod daemon;
#[cfg(feature = "lab")]
pub mod demo;
#[cfg(feature = "lab")]
pub mod emulate;
#[cfg(feature = "lab")]
pub mod simulator;
