//! All integration tests in one binary: a file of tests is one promise and one `mod` line here.

mod layers;
