//! The full-screen monitor.

mod actions;
mod apart;
mod asks;
mod by_hand;
mod chosen_columns;
mod contrast;
mod folded_groups;
mod group_heads;
mod help;
mod in_tmux;
mod looks;
mod machines;
mod mouse;
mod newest_failure;
mod plain;
mod queue;
mod remembered;
mod resize;
mod rows;
mod snapshots;
mod tabs;
mod threads;
mod timelines;
mod trouble;
mod update;
mod usage;
