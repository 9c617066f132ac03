//! Cuts a pane to what one launch of a job has printed, and takes out what `tpu` itself wrote into it.
//!
//! Our own lines are known by their whole shape and never by their first word: a program may print
//! `tpu: RuntimeError: …` as well, and what it prints counts.

use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use super::frames::{Builder, Frames};

/// What the launcher prints at a start, before the launch token.
const MARKER: &[u8] = b"tpu: launch ";

/// What it prints at the end, before the job's id.
const END: &str = "tpu: job ";

/// What all of our own lines begin with.
const OURS: &[u8] = b"tpu: ";

/// The part of a pane that came after the start of the launch `token`; all of it where that line has scrolled
/// out of the history.
///
/// A pane is opened for one launch, and nobody knows its token before. So the first line with it is the
/// launcher's, and a start of any other token is something that the job has printed.
pub fn after_launch<'a>(text: &'a [u8], token: &str) -> &'a [u8] {
    for at in memmem::find_iter(text, MARKER) {
        let rest = text.get(at + MARKER.len()..).unwrap_or_default();
        let name = rest.iter().take_while(|b| is_token(**b)).count();
        if rest.get(..name) == Some(token.as_bytes()) {
            let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            return rest.get(line..).unwrap_or_default();
        }
    }
    text
}

/// The part of the pane of a job that has ended which came before its end: what follows is a shell, in which
/// people do other things. All of it where that line is not there.
pub fn before_end<'a>(text: &'a [u8], job: &str) -> &'a [u8] {
    let end = format!("{END}{job} ended with exit code ");
    // A job may print whatever it likes; the launcher has the last word.
    let at = memmem::rfind(text, end.as_bytes());
    text.get(..at.unwrap_or(text.len())).unwrap_or_default()
}

/// A line that `tpu` itself writes into the window of a job, such that it is known for one when that is read.
pub fn own_line(job: &str, text: &str) -> String {
    format!("tpu: {job} \u{b7} {text}")
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// The lines without those that `tpu` wrote. One that was glued to a line of the job, because that had no end,
/// is cut off it.
pub(super) fn without_ours(frames: Frames<'_>) -> Frames<'_> {
    let text = frames.buffer();
    let from = text.len().saturating_sub(WRAPPED);
    let tail = text.get(from..).unwrap_or_default();
    let wrapped =
        CUT_BY_WIDTH.find_iter(tail).map(|found| found.start() + from..found.end() + from);
    let mut ours: Vec<_> = wrapped.collect();
    for at in memmem::find_iter(text, OURS) {
        let line = text.get(at..).unwrap_or_default();
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if let Some(found) = WHOLE.find(line) {
            ours.push(at..at + found.end());
        }
    }
    if ours.is_empty() {
        return frames;
    }
    ours.sort_by_key(|range| range.start);
    let mut builder = Builder::default();
    for span in frames.spans() {
        let mut start = span.at.start;
        let mut kept = 0;
        for own in ours.iter().filter(|own| own.start < span.at.end && span.at.start < own.end) {
            if let Some(before) = text.get(start..own.start).filter(|text| !text.is_empty()) {
                builder.push(before, span.physical);
                kept += 1;
            }
            start = start.max(own.end);
        }
        let rest = text.get(start..span.at.end).unwrap_or_default();
        // A line that was ours alone stays as a blank one.
        if kept == 0 || !rest.is_empty() {
            builder.push(rest, span.physical);
        }
    }
    builder.finish(frames.physical())
}

/// Bytes at the end of a text in which an end line is looked for that a narrow window has cut into rows.
const WRAPPED: usize = 4_096;

/// A job's id, as in `alice/7`.
const ID: &str = r"[^\s/:]+/\d+";

/// Our own lines: a start and an end, in the words of `assets/launcher.sh`, and an [`own_line`].
static WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    let shapes = format!(
        r"^(?-u)tpu: (?:launch [\w.-]+ \xC2\xB7 job {ID}$|job {ID} ended with exit code -?\d+ after \d+ s|{ID} \xC2\xB7 .*$)"
    );
    Regex::new(&shapes).expect("the pattern is a constant")
});

/// An end line, cut wherever the width of a window may cut it. The blank at the edge may be gone.
static CUT_BY_WIDTH: LazyLock<Regex> = LazyLock::new(|| {
    let cut = |words: &str| -> String {
        let each =
            words.chars().map(|c| if c == ' ' { r"(?: ?\n?)".into() } else { format!(r"{c}\n?") });
        each.collect()
    };
    let end = format!(
        r"(?-u){}(?:[^\s/:]\n?)+/\n?(?:\d\n?)+{}-?\n?(?:\d\n?)+{}(?:\d\n?)+ ?s",
        cut(END),
        cut(" ended with exit code "),
        cut(" after "),
    );
    Regex::new(&end).expect("the pattern is a constant")
});

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "tpu: launch 3f07c2 \u{b7} job alice/7";
    const OVER: &str = "tpu: job alice/7 ended with exit code 0 after 12 s";

    fn lines(text: &str) -> Vec<String> {
        let frames = without_ours(Frames::lines_of(text.as_bytes()));
        (0..frames.len()).map(|i| String::from_utf8_lossy(frames.line(i)).into_owned()).collect()
    }

    #[test]
    fn only_this_launch_is_read() {
        let pane = b"old\ntpu: launch aa1 (attempt 1)\nfirst\ntpu: launch bb2\nsecond\n";
        assert_eq!(after_launch(pane, "bb2"), b"second\n");
        assert_eq!(after_launch(pane, "bb"), pane, "a start of a token is another token");
        assert_eq!(after_launch(b"only text", "aa1"), b"only text");
        assert_eq!(after_launch(b"tpu: launch aa1", "aa1"), b"");
        assert_eq!(after_launch(b"", "aa1"), b"");
    }

    #[test]
    fn a_job_that_prints_a_start_hides_nothing() {
        let pane = b"tpu: launch aa1\nfailed\ntpu: launch aa1\nagain\ntpu: launch bb2\nlast\n";
        let all = b"failed\ntpu: launch aa1\nagain\ntpu: launch bb2\nlast\n";
        assert_eq!(after_launch(pane, "aa1"), all);
    }

    #[test]
    fn a_shell_after_the_end_is_not_read() {
        let fake = "tpu: job alice/7 ended with exit code 0 after 1 s\nfailed";
        let pane = format!("{fake}{OVER}\n$ cat other.log\nKilled\n");
        assert_eq!(before_end(pane.as_bytes(), "alice/7"), fake.as_bytes());
        assert_eq!(before_end(pane.as_bytes(), "alice/70"), pane.as_bytes());
    }

    #[test]
    fn our_own_lines_are_taken_out() {
        let said = own_line("alice/7", "error: cannot write data.json: No space left on device");
        let pane = format!("{START}\na\n{said}\nb\n{OVER}\n$ ");
        assert_eq!(lines(&pane), ["", "a", "", "b", "", "$ "], "and no line changes its number");
        assert_eq!(lines(&format!("KeyError: 'lr'{OVER}\nnext")), ["KeyError: 'lr'", "next"]);
        assert_eq!(lines(OVER), [""]);
    }

    #[test]
    fn an_end_that_was_cut_by_a_width_is_taken_out_as_well() {
        for width in 20..70 {
            let glued = format!("RuntimeError: it is over{OVER}");
            let rows: Vec<&str> = glued
                .as_bytes()
                .chunks(width)
                .map(|row| std::str::from_utf8(row).unwrap())
                .collect();
            for rows in [
                rows.join("\n"),
                rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>().join("\n"),
            ] {
                let left = lines(&format!("{rows}\nnext")).concat();
                assert_eq!(
                    left.replace(' ', ""),
                    "RuntimeError:itisovernext",
                    "at {width}: {rows}"
                );
            }
        }
    }

    #[test]
    fn what_a_job_says_after_our_word_is_its_own() {
        for line in [
            "tpu: RuntimeError: Connection reset by peer",
            "tpu: lab-tpuvm-v2-32-1",
            "tpu: job failed: out of memory",
            "tpu: worker 3 does not answer: Connection refused",
            "tpu: job alice/7 ended with exit code 0 after a RuntimeError",
        ] {
            assert_eq!(lines(line), [line]);
        }
        let more = format!("{OVER} RuntimeError");
        assert_eq!(lines(&more), [" RuntimeError"], "only our own words go");
    }
}
