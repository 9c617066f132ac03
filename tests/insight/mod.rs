//! Looking back: statistics and the archive. What is left and what it cost: quotas and bills.

mod archive;
mod billing;
mod choose;
mod made;
mod month;
mod objects;
mod quota;
mod stats;
