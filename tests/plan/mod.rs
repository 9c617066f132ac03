//! What is concluded and decided from facts.
//!
//! slow: thousands of cases that a seed draws.

mod changes;
mod choice;
mod decide;
mod diagnose;
mod expected;
mod queue;
mod slots;
