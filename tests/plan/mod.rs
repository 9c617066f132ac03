//! What is concluded and decided from facts.

mod decide;
mod diagnose;
mod slots;
