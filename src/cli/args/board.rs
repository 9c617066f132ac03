//! The arguments of the commands about the board: who uses which target, who may have it next.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Deferred, Words};

/// The commands about the board.
#[derive(Debug, Subcommand)]
pub enum Board {
    /// List targets of a type: who uses them, which are free
    #[command(
        after_help = "Examples:\n  tpu find v34 -n\n  tpu find v2-32 --json\n\nTypes: v2, v234, v3+, v*, v2-32, v5e, v5p, v6e; none means all."
    )]
    Find(Deferred<Find>),
    /// Release a target: reservation, user and notes (rel)
    #[command(after_help = "Examples:\n  tpu release v2-32-p2\n  tpu rel v2-32-p2 alice")]
    Release(Deferred<Words>),
    /// Reserve a target for a while (zhan)
    #[command(
        after_help = "Examples:\n  tpu reserve v2-32-p2\n  tpu reserve v2-32-p2 alice --for 2h"
    )]
    Reserve(Deferred<Reserve>),
    /// Set the notes of a target
    #[command(
        name = "ssn",
        after_help = "Examples:\n  tpu ssn v2-32-p2 long run until Friday\n  tpu ssn v2-32-p2 ''"
    )]
    SetNotes(Deferred<Notes>),
    /// Add to the notes of a target
    #[command(
        name = "asn",
        after_help = "Examples:\n  tpu asn v2-32-p2 then bob\n  tpu asn v3-8-1 disk is full"
    )]
    AddNotes(Deferred<Notes>),
    /// Export the board to a spreadsheet, or import it
    #[command(
        name = "board",
        after_help = "Examples:\n  tpu board export csv > board.csv\n  tpu board import csv board.csv"
    )]
    Sheet(Deferred<Sheet>),
}

/// `tpu find`.
#[derive(Debug, Args)]
pub struct Find {
    /// Types: v2, v234, v3+, v*, v2-32; style=NAME
    #[arg(value_name = "TYPE")]
    pub words: Vec<String>,
    /// On-demand targets only
    #[arg(short = 'n', long, conflicts_with = "pre")]
    pub norm: bool,
    /// Preemptible and spot targets only
    #[arg(short = 'p', long, alias = "preemptible")]
    pub pre: bool,
    /// Targets that are gone, and no others (-del)
    #[arg(long)]
    pub deleted: bool,
}

/// `tpu reserve`.
#[derive(Debug, Args)]
pub struct Reserve {
    /// Target, user
    #[arg(value_name = "TARGET|USER")]
    pub words: Vec<String>,
    /// For how long: 45m, 2h
    #[arg(long = "for", value_name = "TIME", default_value = "30m")]
    pub time: String,
}

/// `tpu ssn`, `tpu asn`.
#[derive(Debug, Args)]
pub struct Notes {
    /// Target, alias or full name
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// The notes: every further word
    #[arg(value_name = "NOTES", required = true)]
    pub notes: Vec<String>,
}

/// `tpu board`.
#[derive(Debug, Args)]
pub struct Sheet {
    /// Which way
    #[command(subcommand)]
    pub step: SheetStep,
}

/// Which way the board goes.
#[derive(Debug, Subcommand)]
pub enum SheetStep {
    /// Print the board
    Export {
        /// How
        #[arg(default_value = "csv")]
        format: SheetFormat,
    },
    /// Import notes and reservations; a row belongs to the target that it names
    Import {
        /// How it is written
        format: SheetFormat,
        /// File, or - for standard input
        file: PathBuf,
    },
}

/// How a board is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SheetFormat {
    /// One line for each target, with a line of names on top.
    Csv,
    /// A list of objects.
    Json,
}
