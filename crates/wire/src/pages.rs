//! Commands whose result is a text: help, pages, scripts; and those that have nothing to say.

use super::document::documents;

documents! {
    /// A page of text.
    pub struct TextDocument<'a> {
        /// All of it, without colours.
        text: &'a str,
    }

    /// What a shell reads to complete words.
    pub struct ScriptDocument<'a> {
        /// The script.
        script: &'a str,
    }

    /// A manual page.
    pub struct ManualDocument<'a> {
        /// In roff.
        roff: &'a str,
    }

    /// What `tpu` alone says where there is no terminal.
    pub struct WelcomeDocument {
        /// The commands with which one begins.
        begin: [&'static str; 4],
    }

    /// The demo has come to its end.
    pub struct DemoDocument {
        /// How it went.
        #[schemars(extend("const" = "ok"))]
        demo: &'static str,
    }

    /// A server that answers from now on.
    pub struct ServingDocument<'a> {
        /// Where: the beginning of every address, or a socket.
        address: &'a str,
        /// A link that logs a browser in, once; absent where none was asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        link: Option<&'a str>,
    }

    /// The screen was not opened: this is a dry run.
    pub struct ScreenDocument {
        /// What would have been opened.
        #[schemars(extend("const" = "monitor"))]
        would: &'static str,
    }

    /// What a command says that a kind of target brings along.
    pub struct KindDocument<'a> {
        /// As the kind has it.
        answer: &'a serde_json::Value,
    }

    /// Nothing: what the command had to show is shown already.
    pub struct EmptyDocument {}
}
