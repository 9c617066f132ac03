//! The shape of the sources: layers, sizes, headers, names.

mod layers;
mod variables;
mod walls;
