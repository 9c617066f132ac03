//! Commands whose result is a text: help, pages, scripts; and those that have nothing to say.

use schemars::JsonSchema;
use serde::Serialize;

/// A page of text.
#[derive(Serialize, JsonSchema)]
pub struct TextDocument<'a> {
    /// All of it, without colours.
    pub text: &'a str,
}

/// What a shell reads to complete words.
#[derive(Serialize, JsonSchema)]
pub struct ScriptDocument<'a> {
    /// The script.
    pub script: &'a str,
}

/// A manual page.
#[derive(Serialize, JsonSchema)]
pub struct ManualDocument<'a> {
    /// In roff.
    pub roff: &'a str,
}

/// What `tpu` alone says where there is no terminal.
#[derive(Serialize, JsonSchema)]
pub struct WelcomeDocument {
    /// The commands with which one begins.
    pub begin: [&'static str; 4],
}

/// The demo has come to its end.
#[derive(Serialize, JsonSchema)]
pub struct DemoDocument {
    /// How it went.
    #[schemars(extend("const" = "ok"))]
    pub demo: &'static str,
}

/// A server that answers from now on.
#[derive(Serialize, JsonSchema)]
pub struct ServingDocument<'a> {
    /// Where: the beginning of every address, or a socket.
    pub address: &'a str,
    /// A link that logs a browser in, once; absent where none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub link: Option<&'a str>,
}

/// The screen was not opened: this is a dry run.
#[derive(Serialize, JsonSchema)]
pub struct ScreenDocument {
    /// What would have been opened.
    #[schemars(extend("const" = "monitor"))]
    pub would: &'static str,
}

/// What a command says that a kind of target brings along.
#[derive(Serialize, JsonSchema)]
pub struct KindDocument<'a> {
    /// As the kind has it.
    pub answer: &'a serde_json::Value,
}

/// Nothing: what the command had to show is shown already.
#[derive(Serialize, JsonSchema)]
pub struct EmptyDocument {}
