//! What launchers and loggers put before a line: worker tags, dates, log headers.
//!
//! Rules that begin with `^` are tried at each place where content may start ([`Prefix::starts`]).

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

/// The beginning of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    /// Where the worker, rank or process number stands that a launcher put in front.
    pub(super) worker: Option<Range<usize>>,
    /// Blanks between the launcher's part and the text.
    pub(super) indent: usize,
    /// Where the launcher's part and the indent end: here a logger's header may begin.
    pub(super) launcher: usize,
    /// Where the logger's header ends.
    pub(super) header: usize,
    /// Where a progress bar that lacks its line end stops and a message begins.
    pub(super) bar: usize,
}

impl Prefix {
    /// The prefix of a line that is not there.
    pub(super) const NOTHING: Self =
        Self { worker: None, indent: 0, launcher: 0, header: 0, bar: 0 };

    /// Where the words of a line begin that matter to a person, if `at` is a place among them: behind
    /// tags, dates and headers, and behind a path that a shell or gcloud puts before its complaint.
    pub(super) fn words(&self, text: &[u8], at: usize) -> usize {
        // A header such as `E1121 10:47:10.2 7 agent.cc:332] ` may be what a rule knows: the message is
        // what a person reads.
        let at = at.max(self.header);
        let start = self.starts().filter(|start| *start <= at).max().unwrap_or(0);
        let rest = text.get(start..).unwrap_or_default();
        let lead = LEADS.iter().find_map(|lead| lead.captures(rest)?.get(1));
        start + lead.map_or(0, |lead| lead.end())
    }

    /// The places at which content may begin, each once.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> + use<> {
        let (launcher, header, bar) = (self.launcher, self.header, self.bar);
        std::iter::once(launcher)
            .chain((header != launcher).then_some(header))
            .chain((bar != header && bar != launcher).then_some(bar))
    }
}

/// Tags of launchers. Each is tried again after each, in any order: `2026-… [worker 3] (pid=7) `.
const TAGS: &str = r#"^[\ \t]*(?:
    [>\#|`]\ 
  | (?:\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d/\d{4})[T\ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d|\ UTC)?:?(?:\ -)?[\ \t]+
  | \[(?:\d{4}-\d\d-\d\d|\d\d/\d\d/\d{2,4}|[A-Z][a-z]{2}\ [A-Z][a-z]{2}\ +\d+)[T\ ]\d\d:\d\d:\d\d[^\]]{0,24}\](?:\[[\w\ .:/-]+\]){0,3}(?:\ -)?\ +
  | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?:\ -|:|\ \|)?\ +
  | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d\ [\w.-]+\ (?:[\w./-]+(?:\[\d+\])?:\ )?
  | [\w.-]+\ [\w./-]+\[\d+\]:\ (?:(?:error|fatal):\ )?
  | \[\ *\d+\.\d{6}\]\ +
  | \([A-Za-z][\w.-]{1,30}\)\ 
  | \[?std(?:err|out)\]?\ ?[:|]\ 
  | \[(?:worker|rank|host|node|process|proc|task|w)?[\ _\#:=-]*(?P<a>\d+)(?:[,/]\d+)?\](?:<std\w+>)?(?::\ ?|\ )
  | \((?:[\w./-]+,?\ +)*(?:rank=\d+,\ )?pid=(?P<b>\d+)(?:,[^)]*)?\)\ 
  | \((?:worker|rank|host|node|process|task)[\ _\#:=-]*(?P<c>\d+)\)\ 
  | (?:worker|rank|host|node|process|task)[\ _\#-]?(?P<d>\d+)\ ?[:|>]\ 
  | (?P<e>\d{1,4}):\ 
  | (?P<f>[a-zA-Z][\w.-]*-\d+)\ *[:|]\ 
  | \d{1,3}(?:\.\d{1,3}){3}\ \[(?P<g>\d+)\]\ 
  | (?P<h>\d{1,3}(?:\.\d{1,3}){3}):\ 
  | \[[^\]]*\bpid[\ =]\d+[^\]]*\]\ 
  | Step\ \#\d+\ -\ "[^"]*":\ 
)"#;

/// Headers of loggers: absl and glog, TensorFlow's with a full date, `SkyPilot`'s, Hugging Face's.
const HEADERS: &str = r"^[\ \t]*(?:
    [IWEFD]\d{4}\ \d\d:\d\d:\d+(?:\.\d+)?\ +\d+\ [\w./<>-]+:\d+\]\ *
  | (?:\d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d\.\d+:\ )?[IWEF]\ +(?:\d+\ )?[\w./-]+\.(?:cc|h|py):\d+\]\ *
  | [IWED]\ \d\d-\d\d\ \d\d:\d\d:\d\d\ [\w./]+:\d+\]\ *
  | \[[IWEF]\d{3,4}\ [\d:.]+\ [\w./-]+:\d+\]\ *
  | \[[IWEF]\ [\w./-]+\.(?:cpp|cc|h):\d+\]\ *
  | (?:INFO|DEBUG|ERROR|CRITICAL|FATAL)(?::[\w.]+:\ ?|\ -\ (?:[\w.]+\ -\ +)?|\ \d\d-\d\d\ \d\d:\d\d:\d\d\ \[?[\w./]+\.py:\d+\]\ )
  | \[(?:INFO|WARNING|ERROR|DEBUG)\|[\w.]+:\d+\]\ [\d\ :,.-]+>>\ +
)";

fn compile(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .unicode(false)
        .ignore_whitespace(true)
        .build()
        .expect("the pattern is a constant and a test reads it")
}

static TAG: LazyLock<Regex> = LazyLock::new(|| compile(TAGS));
static HEADER: LazyLock<Regex> = LazyLock::new(|| compile(HEADERS));

/// What hides the words behind it, as the first group: the job's own launcher with its line and the
/// child's number, the directory of any other script or interpreter, and gcloud's name for its command.
static LEADS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [
        r"^((?:\S*/)?launcher\.sh:\ line\ \d+:\ +(?:\d+\ )?)",
        r"^(\S*/)(?:[\w.-]+:\ (?:line\ )?\d+|python[\d.]*|[\w.-]+\.(?:sh|py)|(?:ba|da|z|k)?sh):\ ",
        r"^((?:ERROR:\ )?\(gcloud\.[\w.-]+\)\ )",
    ]
    .map(compile)
});

/// Longest start of a line that is looked at for prefixes.
const REACH: usize = 400;

/// Reads the prefixes of one line.
pub(super) fn read(line: &[u8]) -> Prefix {
    let head = line.get(..REACH).unwrap_or(line);
    let mut launcher = 0;
    let mut worker = None;
    // Six are more than any real pile of launchers puts there.
    for _ in 0..6 {
        let rest = head.get(launcher..).unwrap_or_default();
        if !may_be_tag(rest) {
            break;
        }
        // Room for groups is made before anything is looked for.
        let Some(caps) = TAG.is_match(rest).then(|| TAG.captures(rest)).flatten() else { break };
        let tag =
            ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().find_map(|name| caps.name(name));
        worker = worker.or_else(|| tag.map(|m| launcher + m.start()..launcher + m.end()));
        launcher += caps.get(0).map_or(0, |m| m.end());
    }
    let rest = head.get(launcher..).unwrap_or_default();
    let indent = rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let header = if may_be_header(rest.get(indent..).unwrap_or_default()) {
        HEADER.find(rest).map_or(launcher + indent, |m| launcher + m.end())
    } else {
        launcher + indent
    };
    Prefix {
        worker,
        indent,
        launcher: launcher + indent,
        header,
        bar: after_bar(line).unwrap_or(header),
    }
}

/// A look at a few bytes that spares most lines the expression.
fn may_be_tag(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    match rest.first() {
        Some(b'>' | b'#' | b'|' | b'`' | b'[' | b'(' | b'0'..=b'9') => true,
        // A name of a host or worker: it ends in a digit, and a colon or a bar follows.
        Some(b'a'..=b'z' | b'A'..=b'Z') => {
            let name = rest.get(..64).unwrap_or(rest);
            memchr::memchr2(b':', b'|', name).and_then(|end| name.get(..end)).is_some_and(|name| {
                name.trim_ascii_end().last().is_some_and(|b| b.is_ascii_digit() || *b == b']')
            }) || rest.starts_with(b"std")
                || rest.starts_with(b"worker")
                || rest.starts_with(b"rank")
                || rest.starts_with(b"Step #")
        }
        _ => false,
    }
}

/// The same for headers of loggers.
fn may_be_header(rest: &[u8]) -> bool {
    match rest {
        [b'I' | b'W' | b'E' | b'F' | b'D', b'0'..=b'9' | b' ', ..]
        | [b'I' | b'D' | b'E' | b'C' | b'F', b'N' | b'E' | b'R' | b'A', ..]
        | [b'[', ..] => true,
        [b'0'..=b'9', ..] => rest.get(..40).unwrap_or(rest).windows(2).any(|pair| pair == b": "),
        _ => false,
    }
}

/// Where the text after a tqdm bar begins: bars end in `it/s]`, `s/it, loss=1]` or the like.
fn after_bar(line: &[u8]) -> Option<usize> {
    memchr::memchr(b'%', line)?;
    let bar = memchr::memmem::rfind(line, b"%|")?;
    let rest = line.get(bar..)?;
    let open = memchr::memchr(b'[', rest)?;
    let close = memchr::memchr(b']', rest.get(open..)?)?;
    let end = bar + open + close + 1;
    let text = line.get(end..)?;
    let blank = text.iter().take_while(|b| **b == b' ').count();
    (blank < text.len()).then_some(end + blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_headers_are_taken_off_in_any_pile() {
        let cases = [
            ("ValueError: x", "", "ValueError: x"),
            ("[worker 3] ValueError: x", "3", "ValueError: x"),
            ("[5] ValueError: x", "5", "ValueError: x"),
            ("[rank0]: ValueError: x", "0", "ValueError: x"),
            ("[1,3]<stderr>: ValueError: x", "1", "ValueError: x"),
            ("(pid=120832) ValueError: x", "120832", "ValueError: x"),
            ("(train, rank=0, pid=12, ip=10.0.0.1) ValueError: x", "12", "ValueError: x"),
            ("(task-name pid=77) E 07-06 19:18:16 a.py:137] ValueError: x", "77", "ValueError: x"),
            ("worker-12 | ValueError: x", "12", "ValueError: x"),
            ("t1v-n-5fe8a1-w-0: ValueError: x", "t1v-n-5fe8a1-w-0", "ValueError: x"),
            ("2020-07-11 06:33:53 10.164.0.6 [0] ValueError: x", "0", "ValueError: x"),
            ("2022-11-07 15:48:36 UTC: ValueError: x", "", "ValueError: x"),
            ("04/13/2021 14:49:50 - ValueError: x", "", "ValueError: x"),
            ("> ValueError: x", "", "ValueError: x"),
            ("I1120 06:24:39.558033 140614421764992 a.py:6] ValueError: x", "", "ValueError: x"),
            ("  E0926 17:26:32.075402  157988 agent.cc:332] ValueError: x", "", "ValueError: x"),
            ("[Sun Mar 30 08:24:00 2025] ValueError: x", "", "ValueError: x"),
            ("[2022-06-08 08:12:42,389][src.train][INFO] - ValueError: x", "", "ValueError: x"),
            ("[2059991.491436] ValueError: x", "", "ValueError: x"),
            ("Aug 18 03:19:11 host kernel: ValueError: x", "", "ValueError: x"),
            ("2026-01-13T09:57:13.04+01:00 mail sshd[13]: ValueError: x", "", "ValueError: x"),
            ("stderr: ValueError: x", "", "ValueError: x"),
            ("ERROR:__main__:ValueError: x", "", "ValueError: x"),
            ("Step #4 - \"train\": ValueError: x", "", "ValueError: x"),
            ("Step #4: loss 0.5", "", "Step #4: loss 0.5"),
            ("[rank1]:[E528 08:52:46.164295950 Gloo.cpp:145] ValueError: x", "1", "ValueError: x"),
            (
                "2024-01-31 10:21:35.025511: W external/tsl/a/b.cc:170] ValueError: x",
                "",
                "ValueError: x",
            ),
            (
                "[INFO|trainer.py:1536] 2021-04-16 04:45:03,428 >> ValueError: x",
                "",
                "ValueError: x",
            ),
        ];
        for (line, worker, body) in cases {
            let prefix = read(line.as_bytes());
            let found = prefix.worker.and_then(|at| line.get(at)).unwrap_or_default();
            let rest = line.get(prefix.header..);
            assert_eq!((found, rest), (worker, Some(body)), "{line}");
        }
    }

    #[test]
    fn a_message_glued_to_a_bar_has_its_own_start() {
        let line = b"  0%|     | 0/12000 [00:00<?, ?it/s]jax.errors.X: y";
        assert_eq!(&line[read(line).bar..], b"jax.errors.X: y");
        let bar = b" 50%|##  | 1/2 [00:00<00:01, 1.0it/s]";
        assert_eq!(read(bar).bar, read(bar).header);
    }
}
