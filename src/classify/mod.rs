//! SHIM until the classifier branch is merged.
#![allow(missing_docs, clippy::all, clippy::pedantic)]
use crate::model::facts::*;
pub struct Input<'a> { pub text: &'a [u8], pub exit_code: Option<i32>, pub api_state: Option<&'a str> }
pub struct Classifier;
static C: Classifier = Classifier;
impl Classifier { pub fn builtin() -> &'static Self { &C }
 pub fn classify(&self, _i: &Input<'_>) -> Verdict { Verdict::none() } }
pub fn after_launch<'a>(text: &'a [u8], _token: &str) -> &'a [u8] { text }
