//! The shape of the sources: layers, sizes, headers, names.
//!
//! slow: every source file is parsed.

mod docs;
mod layers;
mod variables;
mod walls;
