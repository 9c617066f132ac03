//! Attempts that run: what is known of them, and what runs them. Knows no kind of target.

pub mod window;
