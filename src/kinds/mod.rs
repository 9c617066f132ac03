//! The kinds of target that there are. Each is a folder or a file here; none knows another.

pub mod tpu;
