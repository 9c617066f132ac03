//! All tests of the program, as one binary: each file in `tests/` would otherwise link it again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod store_disk;
mod store_document;
mod store_os;
mod store_properties;
mod store_reading;
