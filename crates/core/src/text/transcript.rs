//! What a program has told its terminal, as the lines of a log.
//!
//! A terminal shows a bar that is drawn a thousand times in one line; a log of the same bytes is a thousand
//! lines, or one that nobody can read. A [`Transcript`] keeps in mind what a program may still draw over:
//! lines that are never touched again come out as they were, at once. Of what is drawn anew, the first frame
//! of its kind comes out, then one every now and then, and the last one. No kind of frame is left out, so an
//! error that was printed into a bar is in the log.

use std::collections::VecDeque;
use std::time::Duration;

use super::{ESC, escape_len, goes_on};

/// Of a longer line (bytes) nothing is kept in mind: it comes out as it comes.
const LONGEST: usize = 1 << 14;
/// An escape sequence is held up to this length (bytes).
const LONGEST_ESCAPE: usize = 1 << 10;
/// Lines above the newest that may still be drawn over. No window is higher.
const ROWS: usize = 400;
/// Kinds of frames that are known at once.
const KINDS: usize = 32;
/// Between two frames of one kind: a hundredth of its age, within these bounds. A bar of any length becomes
/// a curve, and one that still moves can be told from one that hangs.
const SOONEST: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(60);

/// Turns what a program writes to its terminal into lines, whatever pieces it comes in.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The lines that may still be drawn over, the newest last; never empty.
    rows: VecDeque<Row>,
    /// The line in which the cursor is.
    at: usize,
    /// How many characters it is before the end of its line.
    back: usize,
    /// The beginning of an escape sequence, its ESC first.
    held: Vec<u8>,
    kinds: VecDeque<Kind>,
    /// Whether a line above the newest may have text that has not come out.
    is_redrawing: bool,
}

/// One line of the terminal.
#[derive(Clone, Debug, Default)]
struct Row {
    text: Vec<u8>,
    /// Whether it has come out as it is.
    is_out: bool,
    /// Whether it was drawn over.
    is_redrawn: bool,
    /// Whether its beginning has come out, without an end.
    is_begun: bool,
}

/// Frames that differ in their numbers only.
#[derive(Clone, Copy, Debug)]
struct Kind {
    words: u64,
    first: Duration,
    newest: Duration,
}

/// At the first column, however long the line is.
const HOME: usize = usize::MAX;

impl Default for Transcript {
    fn default() -> Self {
        Self {
            rows: VecDeque::from([Row::default()]),
            at: 0,
            back: 0,
            held: Vec::new(),
            kinds: VecDeque::new(),
            is_redrawing: false,
        }
    }
}

impl Transcript {
    /// Takes what the program wrote at `now`, and puts the lines that come out of it behind `lines`.
    pub fn take(&mut self, mut bytes: &[u8], now: Duration, lines: &mut Vec<u8>) {
        while let Some(first) = bytes.first() {
            if !self.held.is_empty() {
                bytes = self.hold(bytes, now, lines);
                continue;
            }
            let text = bytes.iter().position(|b| is_control(*b)).unwrap_or(bytes.len());
            if text > 0 {
                let (text, rest) = bytes.split_at(text);
                self.print(text, now, lines);
                bytes = rest;
                continue;
            }
            match *first {
                ESC => self.held.push(ESC),
                b'\n' => self.feed(now, lines),
                b'\r' => self.back = HOME,
                0x08 => self.back = self.back.saturating_add(1),
                // Bells and the like leave nothing.
                _ => {}
            }
            bytes = bytes.get(1..).unwrap_or_default();
        }
    }

    /// Nothing comes after this: what is still open is a line.
    pub fn end(&mut self, lines: &mut Vec<u8>) {
        for row in &mut self.rows {
            if row.is_begun || !row.is_blank() {
                row.come_out(lines);
            }
        }
        *self = Self::default();
    }

    /// What has not come out yet. A transcript that begins with it goes on where this one is.
    pub fn open(&self) -> Vec<u8> {
        let waits = |row: &&Row| !row.is_out && !row.text.is_empty();
        let rows: Vec<&[u8]> = self.rows.iter().filter(waits).map(|row| &*row.text).collect();
        let mut open = rows.join(&b'\n');
        if self.back == HOME && !open.is_empty() {
            open.push(b'\r');
        }
        open.extend_from_slice(&self.held);
        open
    }

    /// Puts text where the cursor is.
    fn print(&mut self, text: &[u8], now: Duration, lines: &mut Vec<u8>) {
        let back = std::mem::take(&mut self.back);
        if back > 0 {
            self.cut_back(back, now, lines);
        }
        let Some(row) = self.rows.get_mut(self.at) else { return };
        row.is_out = false;
        for piece in text.chunks(LONGEST) {
            if row.text.len() + piece.len() > LONGEST {
                lines.append(&mut row.text);
                row.is_begun = true;
            }
            row.text.extend_from_slice(piece);
        }
    }

    /// Takes away the last so many characters of the line; from its beginning on, that is another frame.
    fn cut_back(&mut self, back: usize, now: Duration, lines: &mut Vec<u8>) {
        let Some(row) = self.rows.get_mut(self.at) else { return };
        let start = |(_, b): &(usize, &u8)| **b & 0xc0 != 0x80;
        let cut = match back {
            HOME => 0,
            _ => row.text.iter().enumerate().filter(start).nth_back(back - 1).map_or(0, |(i, _)| i),
        };
        if row.text.is_empty() {
            row.is_redrawn |= row.is_out;
        } else if cut == 0 {
            self.settle(self.at, now, lines);
            if let Some(row) = self.rows.get_mut(self.at) {
                row.is_redrawn = true;
                row.text.clear();
            }
        } else {
            row.is_redrawn = true;
            row.text.truncate(cut);
        }
    }

    /// A frame is complete and may be drawn over now: it comes out if it is the first of its kind, or the
    /// last one that did is long enough ago.
    fn settle(&mut self, at: usize, now: Duration, lines: &mut Vec<u8>) {
        let Some(row) = self.rows.get_mut(at) else { return };
        if row.is_begun {
            row.come_out(lines);
        }
        if row.is_out || row.is_blank() {
            return;
        }
        let words = words_of(&row.text);
        if let Some(kind) = self.kinds.iter_mut().find(|kind| kind.words == words) {
            let age = now.saturating_sub(kind.first);
            if now.saturating_sub(kind.newest) < (age / 100).clamp(SOONEST, LATEST) {
                return;
            }
            kind.newest = now;
        } else {
            if self.kinds.len() >= KINDS {
                self.kinds.pop_front();
            }
            self.kinds.push_back(Kind { words, first: now, newest: now });
        }
        row.come_out(lines);
    }

    /// The end of a line.
    fn feed(&mut self, now: Duration, lines: &mut Vec<u8>) {
        if self.at + 1 < self.rows.len() {
            self.move_to(self.at + 1, now, lines);
            return;
        }
        if std::mem::take(&mut self.is_redrawing) {
            for row in self.rows.iter_mut().take(self.at).filter(|row| !row.is_blank()) {
                row.come_out(lines);
                row.text.clear();
            }
        }
        if let Some(row) = self.rows.get_mut(self.at) {
            row.come_out_unless_wiped(lines);
            row.text = Vec::new();
        }
        self.new_row();
        self.back = 0;
    }

    fn new_row(&mut self) {
        if self.rows.len() >= ROWS {
            self.rows.pop_front();
        }
        self.rows.push_back(Row::default());
        self.at = self.rows.len() - 1;
    }

    /// Moves the cursor to the begin of a line that is there.
    fn move_to(&mut self, row: usize, now: Duration, lines: &mut Vec<u8>) {
        self.settle(self.at, now, lines);
        self.is_redrawing = true;
        self.at = row.min(self.rows.len() - 1);
        self.back = HOME;
    }

    /// Takes what belongs to the escape sequence that has begun, and returns the rest.
    fn hold<'a>(&mut self, bytes: &'a [u8], now: Duration, lines: &mut Vec<u8>) -> &'a [u8] {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            self.held.push(*byte);
            rest = after;
            let body = self.held.get(1..).unwrap_or_default();
            if goes_on(body) {
                if body.len() >= LONGEST_ESCAPE {
                    // What it was is enough to know where it ends.
                    self.held.truncate(2);
                }
                continue;
            }
            let length = escape_len(body);
            let surplus = body.get(length..).unwrap_or_default().to_vec();
            let sequence = body.get(..length).unwrap_or_default().to_vec();
            self.held.clear();
            self.obey(&sequence, now, lines);
            // At most the few bytes that were needed to see the end.
            self.take(&surplus, now, lines);
            break;
        }
        rest
    }

    /// Carries out a sequence that moves the cursor or wipes something. The others leave no text.
    fn obey(&mut self, sequence: &[u8], now: Duration, lines: &mut Vec<u8>) {
        let [b'[', parameters @ .., last] = sequence else { return };
        let first = parameters.split(|b| *b == b';').next().unwrap_or_default();
        let number = std::str::from_utf8(first).ok().and_then(|text| text.parse::<usize>().ok());
        let count = number.unwrap_or(1).max(1);
        match last {
            b'A' | b'F' => self.move_to(self.at.saturating_sub(count), now, lines),
            b'B' | b'E' => self.move_to(self.at.saturating_add(count), now, lines),
            b'H' | b'f' => self.move_to(count - 1, now, lines),
            b'G' | b'`' if count == 1 => self.back = HOME,
            b'G' | b'`' => self.back = self.length().saturating_sub(count - 1),
            b'D' => self.back = self.back.saturating_add(count),
            b'C' if self.back == HOME => self.back = self.length().saturating_sub(count),
            b'C' if self.back >= count => self.back -= count,
            b'C' => {
                let blanks = (count - std::mem::take(&mut self.back)).min(ROWS);
                self.print(&b" ".repeat(blanks), now, lines);
            }
            b'K' => self.wipe_line(number.unwrap_or(0), now, lines),
            b'J' => {
                self.wipe_line(0, now, lines);
                let from = if number.unwrap_or(0) == 0 { self.at + 1 } else { 0 };
                for at in from..self.rows.len() {
                    self.wipe(at, now, lines);
                }
            }
            _ => {}
        }
    }

    /// Wipes from the cursor to the end of the line, or the whole line.
    fn wipe_line(&mut self, how: usize, now: Duration, lines: &mut Vec<u8>) {
        if how == 0 && self.back != HOME {
            let back = std::mem::take(&mut self.back);
            if back > 0 {
                self.cut_back(back, now, lines);
            }
        } else {
            self.wipe(self.at, now, lines);
        }
    }

    fn wipe(&mut self, at: usize, now: Duration, lines: &mut Vec<u8>) {
        self.settle(at, now, lines);
        if let Some(row) = self.rows.get_mut(at) {
            row.is_redrawn |= !row.text.is_empty() || row.is_out;
            row.text.clear();
        }
    }

    /// Characters of the line with the cursor.
    fn length(&self) -> usize {
        let text = self.rows.get(self.at).map_or(&[][..], |row| &row.text);
        text.iter().filter(|b| **b & 0xc0 != 0x80).count()
    }
}

impl Row {
    fn is_blank(&self) -> bool {
        self.text.iter().all(u8::is_ascii_whitespace)
    }

    fn come_out(&mut self, lines: &mut Vec<u8>) {
        if !self.is_out {
            // Blanks wipe what was longer.
            let text = if self.is_redrawn { self.text.trim_ascii_end() } else { &self.text };
            lines.extend_from_slice(text);
            lines.push(b'\n');
            (self.is_out, self.is_begun) = (true, false);
        }
    }

    /// A line that was wiped is a gap that nobody would miss; an empty one may part two texts.
    fn come_out_unless_wiped(&mut self, lines: &mut Vec<u8>) {
        if self.is_redrawn && self.is_blank() && !self.is_begun {
            self.is_out = true;
        }
        self.come_out(lines);
    }
}

/// Whether a byte is a control character: nothing that a terminal shows as text.
fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// The words of a frame as one number: letters only, so that a bar keeps its words while it grows.
fn words_of(text: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(text);
    let words = text.split(|c: char| !c.is_alphabetic());
    // Units change with the numbers: it/s, s/it, kB, MB.
    let long = words.filter(|word| word.chars().count() > 2);
    super::fnv1a(long.flat_map(|word| word.bytes().chain([b' '])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything at one moment.
    fn log(pieces: &[&[u8]]) -> String {
        let (mut transcript, mut lines) = (Transcript::default(), Vec::new());
        for piece in pieces {
            transcript.take(piece, Duration::ZERO, &mut lines);
        }
        transcript.end(&mut lines);
        String::from_utf8_lossy(&lines).into_owned()
    }

    #[test]
    fn plain_lines_come_out_as_they_are_and_at_once() {
        let text = "one\r\n\r\n  two  \r\n\ttabs\tand ünicode\r\n";
        let (mut transcript, mut lines) = (Transcript::default(), Vec::new());
        transcript.take(text.as_bytes(), Duration::ZERO, &mut lines);
        assert_eq!(String::from_utf8_lossy(&lines), text.replace('\r', ""));
        assert_eq!(log(&[b"no end"]), "no end\n");
        assert_eq!(log(&[b""]), "");
    }

    #[test]
    fn escapes_leave_the_text() {
        assert_eq!(
            log(&[b"\x1b[1;34mwandb\x1b[0m: \x1b]0;title\x07done\x07\r\n"]),
            "wandb: done\n"
        );
        assert_eq!(log(&[b"a\x1b[?25lb\x1b(Bc\x1b]8;;x\x1b\\d\x1b]8;;\x1b\\e\n"]), "abcde\n");
        assert_eq!(log(&[b"cut\x1b]0;never ends\nnext\n"]), "cut\nnext\n");
        assert_eq!(log(&[b"cut\x1b["]), "cut\n");
    }

    #[test]
    fn a_bar_is_its_first_and_its_last_frame_and_some_between() {
        let mut text = Vec::new();
        for step in 0..1000 {
            text.extend_from_slice(format!("\r{step}/1000 loss={step}.5").as_bytes());
        }
        text.extend_from_slice(b"\r\nnext\r\n");
        assert_eq!(log(&[&text]), "0/1000 loss=0.5\n999/1000 loss=999.5\nnext\n");

        let (mut transcript, mut lines) = (Transcript::default(), Vec::new());
        for step in 0..36_000_u64 {
            let frame = format!("\rstep {step}/36000");
            transcript.take(frame.as_bytes(), Duration::from_millis(step * 100), &mut lines);
        }
        let text = String::from_utf8(lines).unwrap();
        let steps: Vec<u64> = text.lines().map(|l| l[5..l.len() - 6].parse().unwrap()).collect();
        assert!((200..1200).contains(&steps.len()), "an hour in {} lines", steps.len());
        assert!(steps.windows(2).all(|two| two[1] - two[0] <= 600), "never a minute without");
    }

    #[test]
    fn what_was_printed_into_a_bar_is_kept() {
        let text =
            b"\r 10%|# | 1/9\r 20%|## | 2/9 ValueError: x\r 30%|### | 3/9\r 40%|#### | 4/9\n";
        assert_eq!(log(&[text]), " 10%|# | 1/9\n 20%|## | 2/9 ValueError: x\n 40%|#### | 4/9\n");
        // tqdm.write wipes the bar, writes, and draws it again.
        let text = b"\r 1/9\r 2/9\r    \rsaved\n\r 3/9\r 4/9\r    \rsaved\n\r 9/9\n";
        assert_eq!(log(&[text]), " 1/9\nsaved\nsaved\n 9/9\n");
    }

    #[test]
    fn lines_above_may_be_drawn_anew() {
        let frame = |n: u32| format!("loss {n}\r\ndone {n}");
        let mut text = format!("begin\r\n{}", frame(0));
        for n in 1..50 {
            text += &format!("\r\x1b[2K\x1b[1A\x1b[2K{}", frame(n));
        }
        text += "\r\nend\r\n";
        assert_eq!(
            log(&[text.as_bytes()]),
            "begin\nloss 0\ndone 0\nloss 1\nloss 49\ndone 49\nend\n"
        );
        let mut text = String::from("a 0\nb 0\n");
        for n in 1..50 {
            text += &format!("\x1b[2Aa {n}\x1b[K\nb {n}\x1b[K\n");
        }
        assert_eq!(log(&[text.as_bytes()]), "a 0\nb 0\na 1\na 49\nb 49\n");
    }

    #[test]
    fn a_spinner_and_its_backspaces_are_one_line() {
        assert_eq!(log(&[b"Working |\x08/\x08-\x08 done\n"]), "Working  done\n");
        assert_eq!(log(&["caf\u{e9}\x08e\n".as_bytes()]), "cafe\n");
    }

    #[test]
    fn a_line_without_an_end_takes_no_memory() {
        let (mut transcript, mut lines) = (Transcript::default(), Vec::new());
        for _ in 0..40 {
            transcript.take(&b"x".repeat(100_000), Duration::ZERO, &mut lines);
        }
        assert!(transcript.rows[0].text.len() <= LONGEST);
        transcript.end(&mut lines);
        assert_eq!(lines, [&b"x".repeat(4_000_000)[..], b"\n"].concat(), "one line, still");
        transcript.take(b"\x1b]52;c;", Duration::ZERO, &mut lines);
        for _ in 0..40 {
            transcript.take(&b"A".repeat(100_000), Duration::ZERO, &mut lines);
        }
        assert!(transcript.held.len() <= LONGEST_ESCAPE + 1);
    }

    fn terminal_bytes() -> impl Strategy<Value = Vec<u8>> {
        let pieces: Vec<&[u8]> = vec![
            b"\n",
            b"\r\n",
            b"\r",
            b"\x08",
            b"\x1b[A",
            b"\x1b[2A",
            b"\x1b[K",
            b"\x1b[2K",
            b"\x1b[J",
            b"\x1b[1;32m",
            b"\x1b]0;t\x07",
            b"\x1b]8;;u\x1b\\",
            b"\x1b",
            b"\x1b[",
            b"step 1",
            b"loss",
            b"  ",
            b"\x1b[3C",
            b"\x1b[2D",
            b"\x1b[5G",
            b"\x1b[H",
            b"\xc3\xa9",
            b"\xff",
            b"\x1bP1",
            b"\x1b\x1b",
        ];
        let piece = prop_oneof![
            6 => proptest::sample::select(pieces).prop_map(<[u8]>::to_vec),
            2 => proptest::collection::vec(any::<u8>(), 0..4),
            2 => "[a-z0-9 ]{1,8}".prop_map(String::into_bytes),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_does_not_matter_in_what_pieces_it_comes(
            bytes in terminal_bytes(),
            cuts in proptest::collection::vec(1..7_usize, 0..200),
        ) {
            let mut pieces = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = later;
            }
            pieces.push(rest);
            prop_assert_eq!(log(&[&bytes]), log(&pieces));
        }

        #[test]
        fn text_without_redraws_loses_nothing(
            lines in proptest::collection::vec(("[ -~äß]{0,30}", prop_oneof![Just(1), Just(900)]), 0..40),
        ) {
            let text: String =
                lines.iter().map(|(line, times)| line.repeat(*times) + "\n").collect();
            prop_assert_eq!(log(&[text.as_bytes()]), text);
        }

        #[test]
        fn what_is_open_goes_on_in_another_transcript(
            lines in proptest::collection::vec("[ -~]{0,30}", 1..20),
            at in 0..600_usize,
        ) {
            let text = lines.join("\n");
            let (before, after) = text.as_bytes().split_at(at.min(text.len()));
            let (mut first, mut second) = (Transcript::default(), Transcript::default());
            let mut log = Vec::new();
            first.take(before, Duration::ZERO, &mut log);
            second.take(&first.open(), Duration::ZERO, &mut log);
            second.take(after, Duration::ZERO, &mut log);
            second.end(&mut log);
            let whole = self::log(&[text.as_bytes()]);
            prop_assert_eq!(String::from_utf8(log).unwrap(), whole);
        }

        #[test]
        fn no_escape_comes_out(bytes in terminal_bytes()) {
            let log = log(&[&bytes]);
            prop_assert!(!log.bytes().any(|b| is_control(b) && b != b'\n'), "{log:?}");
        }
    }
}
