//! The full-screen monitor.
//!
//! slow: the screen in a real tmux, drawn at each size, against clouds that are slow.

mod actions;
mod again;
mod apart;
mod ascii;
mod asks;
mod by_hand;
mod caption;
mod charts;
mod chosen_columns;
mod contrast;
mod first_minutes;
mod flags;
mod fleet;
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
mod trials;
mod trouble;
mod update;
mod usage;
