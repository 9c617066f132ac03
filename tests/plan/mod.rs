//! What is concluded and decided from facts.

mod changes;
mod choice;
mod decide;
mod diagnose;
mod expected;
mod queue;
mod slots;
