//! data.json as types (skeleton).
