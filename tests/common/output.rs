//! What a command printed, and how it ended.

use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::env::TPU;

/// What a command printed and how it ended; paths of the test appear as `[DIR]`.
pub(crate) struct CommandOutput {
    pub(super) command: String,
    pub(super) root: String,
    pub(super) socket: String,
    /// As a shell reports it.
    pub(crate) code: i32,
    /// Standard output as it was.
    pub(crate) stdout: String,
    /// Standard error without blanks around it.
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// Insists on an exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert!(self.code == code, "expected exit code {code}\n{}", self.report());
        self
    }

    /// Insists on words, anywhere in what was printed.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        let text = self.to_string();
        for word in words {
            assert!(text.contains(word), "expected to read {word:?}\n{}", self.report());
        }
        self
    }

    /// The JSON document on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let parsed: Result<Value, _> = serde_json::from_str(&self.stdout);
        let document = parsed.unwrap_or_else(|e| panic!("{e}\n{}", self.report()));
        assert!(document["schema"] == 1, "no schema\n{}", self.report());
        document
    }

    /// Everything that helps to understand a failure.
    pub(crate) fn report(&self) -> String {
        let mut tree = String::new();
        list(Path::new(&self.root), 0, &mut tree);
        format!("$ {}\n{self}\n{tree}", self.normalised(&self.command))
    }

    fn normalised(&self, text: &str) -> String {
        text.replace(&self.root, "[DIR]").replace(&self.socket, "[SOCKET]").replace(TPU, "tpu")
    }
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (out, err) = (self.normalised(&self.stdout), self.normalised(&self.stderr));
        write!(f, "{out}\n{err}\nexit code {}", self.code)
    }
}

/// Names of files, indented.
fn list(dir: &Path, depth: usize, into: &mut String) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        into.push_str(&"  ".repeat(depth));
        into.push_str(&entry.file_name().to_string_lossy());
        into.push('\n');
        if depth < 6 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&entry.path(), depth + 1, into);
        }
    }
}
