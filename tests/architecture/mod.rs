//! The shape of the sources: layers, sizes, headers.

mod layers;
