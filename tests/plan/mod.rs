//! What is concluded and decided from facts.

mod choice;
mod decide;
mod diagnose;
mod expected;
mod queue;
mod slots;
