//! The shell commands by which a worker is entered, over a connection that may run a command again. The login shell of the
//! account reads one line, which all shells read alike ([`for_any_shell`]); what it stands for is read by `sh` and `bash`.
//!
//! A second run reads what the first one has left of the input: that is never taken for a script. And the
//! exit code of a connection is its own affair: what a command ended with, the worker says in words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::sys::random::{OsRandom, Random as _};

use super::{Ask, End, Worker};

/// What the worker is asked to do with.
const DOOR: &str =
    concat!(include_str!("../../../../assets/look.sh"), include_str!("../../../../assets/door.sh"));
/// How everything begins that the worker says for us.
pub(super) const ANSWER: &str = "tpu: ";
/// The worker's first word, on standard error: the connection stands.
const BEGUN: &str = "begun";

/// The command line by which any login shell runs a script of ours in `sh`: bash, dash, zsh, fish and tcsh read its words
/// alike, whatever the script holds.
pub fn for_any_shell(script: &str) -> String {
    format!("exec sh -c 'eval \"$(printf %s {} | base64 -d)\"'", STANDARD.encode(script))
}

/// The command line by which any login shell hands somebody's command to bash. One that all shells read alike stays as a
/// person would type it.
pub(super) fn for_bash(command: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./:,+@=".contains(c);
    let assigns = command.split(' ').next().is_some_and(|first| first.contains('='));
    if command.chars().all(is_plain) && !assigns {
        return command.to_owned();
    }
    for_any_shell(&format!("exec bash -c {}", quoted(command)))
}

/// A word of a script of ours.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The command that opens the door, and what it reads.
pub(super) fn door(
    worker: &Worker,
    (verb, token): (&str, &str),
    args: &[String],
    payload: &[u8],
) -> (String, Vec<u8>) {
    let nonce = OsRandom.hex(8);
    let door = DOOR.trim_end();
    let script = format!(
        "IFS= read -r s && [ \"$s\" = {nonce} ] && s=$(head -c {length}) && [ ${{#s}} = {length} ] || \
         {{ echo 'the connection broke on the way' >&2; exit 1; }}; \
         echo {ANSWER}{BEGUN} >&2; eval \"$s\"",
        length = door.len(),
    );
    let index = worker.index.to_string();
    let fixed = [verb, token, &index, &worker.address];
    let words: Vec<String> =
        fixed.into_iter().chain(args.iter().map(String::as_str)).map(quoted).collect();
    let command = format!("exec bash -c {} bash {}", quoted(&script), words.join(" "));
    (for_any_shell(&command), [nonce.as_bytes(), b"\n", door.as_bytes(), payload].concat())
}

/// Whether the door has said that it is open.
pub(super) fn has_begun(complaint: &[u8]) -> bool {
    String::from_utf8_lossy(complaint).lines().any(|line| line.strip_prefix(ANSWER) == Some(BEGUN))
}

/// What the door said at the end of a command's output, if it came to that.
pub(super) fn said_at_the_end(complaint: &[u8]) -> Option<End> {
    let text = String::from_utf8_lossy(complaint);
    let last = text.lines().rev().find_map(|line| line.strip_prefix(ANSWER))?.to_owned();
    if let Some(code) = last.strip_prefix("exit ") {
        return code.parse().ok().map(End::Exit);
    }
    last.strip_prefix("lost ").map(|why| End::Lost(why.to_owned()))
}

/// The last line that says something, and is none of ours.
pub(super) fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let is_theirs = |line: &&str| !line.is_empty() && !line.starts_with(ANSWER);
    let line = text.lines().rev().map(str::trim).find(is_theirs);
    line.map(str::to_owned)
}

/// A shell command of somebody, which says when it has begun and how it has ended.
pub(super) struct Told {
    /// What our words in its standard error begin with; nobody else knows it beforehand.
    mark: String,
    /// Whether it has begun.
    pub(super) has_begun: bool,
    /// Its exit code, once it has said it.
    pub(super) exit: Option<i32>,
}

impl Told {
    /// The command line for the worker, and the ear for what it says of itself.
    pub(super) fn of(worker: &Worker, ask: &Ask) -> (String, Self) {
        let mark = format!("{ANSWER}{} ", OsRandom.hex(8));
        let begun = format!("export TPU_WORKER={}; echo '{mark}{BEGUN}' >&2;", worker.index);
        let ends = format!("echo \"{mark}$?\" >&2; exit 0");
        let command = if ask.is_ours {
            // As a command over ssh bash reads the account's files, and has done so as the login shell that most have.
            let script = format!("{begun} trap {} EXIT\n{}", quoted(&ends), ask.command);
            format!("exec bash --norc -c {}", quoted(&script))
        } else {
            // A subshell: a command that ends its shell does not end the one that tells its code. That one ends
            // well: a connection that ends otherwise has failed.
            let script = format!("{begun} (eval \"$0\"); {ends}");
            format!("exec bash -c {} {}", quoted(&script), quoted(&ask.command))
        };
        (for_any_shell(&command), Self { mark, has_begun: false, exit: None })
    }

    /// Takes our words out of a line of its standard error; what is left is the command's.
    pub(super) fn hear(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        if let Some(at) = memchr::memmem::find(&line, self.mark.as_bytes()) {
            let word = String::from_utf8_lossy(&line.split_off(at)).into_owned();
            match word.get(self.mark.len()..).map(str::trim_end) {
                Some(BEGUN) => self.has_begun = true,
                word => self.exit = word.and_then(|code| code.parse().ok()),
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::proc::{self, Spawn};

    #[test]
    fn only_the_doors_own_last_words_are_an_end() {
        assert_eq!(said_at_the_end(b"tpu: begun\nwarning\ntpu: exit 3\n"), Some(End::Exit(3)));
        let lost = said_at_the_end(b"tpu: lost it was never started there\nConnection closed.\n");
        assert_eq!(lost, Some(End::Lost("it was never started there".to_owned())));
        assert_eq!(said_at_the_end(b"Connection to 10.0.0.1 closed by remote host.\n"), None);
        assert_eq!(said_at_the_end(b"tpu: begun\n"), None);
        assert_eq!(said_at_the_end(b"tpu: exit many\n"), None);
        assert_eq!(last_line(b"ssh: no\ntpu: begun\n \n").as_deref(), Some("ssh: no"));
    }

    #[test]
    fn our_words_are_taken_out_of_the_commands() {
        let mut told = Told::of(&Worker { index: 0, address: String::new() }, &Ask::default()).1;
        assert_eq!(told.hear(b"tpu: exit 0\n".to_vec()), b"tpu: exit 0\n", "a command's own");
        let begun = format!("{}begun\n", told.mark).into_bytes();
        assert_eq!((told.hear(begun), told.has_begun, told.exit), (Vec::new(), true, None));
        let end = format!("no line end{}255\n", told.mark).into_bytes();
        assert_eq!((told.hear(end), told.exit), (b"no line end".to_vec(), Some(255)));
    }

    #[test]
    fn every_shell_reads_a_script_alike() {
        let hostile =
            "printf '%s|' \"it's\" back\\\\slash 'hi!there' '$HOME' '`x`'\necho 'a\nb' ünï";
        let expected = "it's|back\\slash|hi!there|$HOME|`x`|a\nb ünï\n";
        // Those that this machine has.
        for shell in ["sh", "bash", "dash", "zsh", "fish", "tcsh"] {
            let run = |line: String| proc::run(&Spawn::new(shell).args(["-c", &line]));
            let Ok(output) = run(for_any_shell(hostile)) else { continue };
            assert_eq!(output.text(), expected, "{shell}: {}", output.complaint());
            assert_eq!(run(for_bash(hostile)).unwrap().text(), expected, "{shell}");
            let long = format!("x={}; echo ${{#x}}", "y".repeat(60_000));
            assert_eq!(run(for_any_shell(&long)).unwrap().text(), "60000\n", "{shell}");
        }
        assert_eq!(for_bash("env A=1 tmux attach -t alice:7"), "env A=1 tmux attach -t alice:7");
        assert!(for_bash("A=1 tmux").starts_with("exec sh -c"), "tcsh knows no such words");
    }

    #[test]
    fn a_word_stays_one_word() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn the_length_of_the_door_is_the_same_in_every_locale() {
        assert!(DOOR.is_ascii());
    }
}
