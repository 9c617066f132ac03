//! Looking back: statistics and the archive. What is left and what it cost: quotas and bills.
//!
//! slow: a month of history, and answers of a cloud that take their time.

mod across;
mod archive;
mod billing;
mod checkpoints;
mod choose;
mod copies;
mod each;
mod made;
mod month;
mod objects;
mod pruned;
mod quota;
mod shelves;
mod stats;
mod stored;
mod tab;
mod together;
