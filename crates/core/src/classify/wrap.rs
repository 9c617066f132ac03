//! Joins lines that a terminal's width had cut, where tmux could not do it (`capture-pane -J`).

use super::frames::{Builder, Frames};

/// Panes are not narrower; a "width" below it is a short text.
const NARROWEST: usize = 20;
/// One line alone is no width below this: two short lines are two.
const NARROWEST_ALONE: usize = 28;
/// A text whose longest line is longer than this was not cut by a terminal.
const WIDEST: usize = 320;

/// The lines of `frames`, joined if they look cut at one width.
///
/// The evidence: no line is longer than some width, lines of exactly that width occur, and what follows
/// them does not begin the way a fresh line does. A wrong join costs little (the phrases of both lines
/// still match), a missed one may cost the verdict.
pub(super) fn join(frames: Frames<'_>) -> Frames<'_> {
    let mut width = 0;
    for span in frames.spans() {
        let bytes = span.at.len();
        // A character has at most four bytes: longer lines need no counting.
        if bytes > 4 * WIDEST {
            return frames;
        }
        if bytes > width {
            width = width.max(columns(frames.buffer().get(span.at.clone()).unwrap_or_default()));
        }
    }
    if !(NARROWEST..=WIDEST).contains(&width) {
        return frames;
    }
    let count = frames.len();
    let joins = |i: usize| i + 1 < count && continues(frames.line(i), frames.line(i + 1), width);
    // One longest line is in every text; two of one length, or nearly nothing else, is a width. But rows
    // of a table have one length too, and few of them are followed by anything but a row.
    let is_full = |i: &usize| {
        let line = frames.line(*i);
        line.len() >= width && columns(line) == width
    };
    let full: Vec<usize> = (0..count).filter(is_full).collect();
    let lone = full.first().is_some_and(|i| in_a_word(frames.line(*i), frames.line(i + 1)));
    let is_width = (NARROWEST_ALONE..=60).contains(&width);
    let few = full.len() < 2 && (count > 3 || !is_width || !lone);
    let joined = full.iter().filter(|i| joins(**i)).count();
    let table = full.len() > 1 && joined * 2 <= full.len();
    if few || table || joined == 0 {
        return frames;
    }
    let mut builder = Builder::default();
    let mut open = false;
    for (i, span) in frames.spans().iter().enumerate() {
        let text = frames.line(i);
        if open {
            builder.extend(text, span.physical);
        } else {
            builder.push(text, span.physical);
        }
        open = joins(i);
        if open && columns(text) < width {
            // The blank at the edge was dropped by the terminal.
            builder.extend(b" ", span.physical);
        }
    }
    builder.finish(frames.physical())
}

/// Whether `next` is the rest of `line` in a window of `width` columns.
fn continues(line: &[u8], next: &[u8], width: usize) -> bool {
    // Only narrow windows cut so often that the dropped blank at the edge is worth a guess.
    let slack = usize::from(width < 60);
    line.len() + slack >= width
        && columns(line) + slack >= width
        && !next.is_empty()
        && !fresh(line, next)
}

/// Whether the end of `line` and the begin of `next` may be one word. A number at the end is whole: a wrong one is
/// worse than none.
fn in_a_word(line: &[u8], next: &[u8]) -> bool {
    let lower = |b: &u8| b.is_ascii_lowercase() || *b == b'_';
    line.last().is_some_and(lower) && next.first().is_some_and(lower)
        || line.last().is_some_and(u8::is_ascii_uppercase)
            && next.first().is_some_and(u8::is_ascii_uppercase)
}

/// Whether `next` begins like a line of its own.
fn fresh(line: &[u8], next: &[u8]) -> bool {
    const STARTS: [&[u8]; 19] = [
        b"Traceback (most",
        b"  File \"",
        b"    ",
        b"[worker",
        b"wandb:",
        b"ERROR:",
        b"INFO:",
        b"WARNING:",
        b"@@@",
        b"===",
        b"---",
        b"*** ",
        b"Epoch ",
        b"Killed",
        b"Terminated",
        b"Aborted",
        b"Segmentation fault",
        b"bash: ",
        b"ssh: ",
    ];
    STARTS.iter().any(|start| next.starts_with(start))
        || raised(next)
        || same_shape(line, next)
        || same_fields(line, next)
}

/// Whether both are rows of one table, such as the heads of a CSV file and its first row.
fn same_fields(line: &[u8], next: &[u8]) -> bool {
    let fields = |line: &[u8], mark: u8| memchr::memchr_iter(mark, line).count();
    [b',', b'\t', b';', b'|'].into_iter().any(|mark| {
        let marks = fields(line, mark);
        marks >= 2 && marks == fields(next, mark)
    })
}

/// Whether a line begins as the last line of a traceback does: `ValueError: …`.
fn raised(line: &[u8]) -> bool {
    let name = line.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'));
    let (name, rest) = line.split_at_checked(name.count()).unwrap_or_default();
    let named = [&b"Error"[..], b"Exception", b"Interrupt"].iter().any(|end| name.ends_with(end));
    named && (rest.is_empty() || rest.starts_with(b":"))
}

/// Whether two lines begin alike, digits apart: rows of a log rather than the halves of one row.
fn same_shape(line: &[u8], next: &[u8]) -> bool {
    let shape = |b: &u8| if b.is_ascii_digit() { b'0' } else { *b };
    let alike = line.iter().map(shape).zip(next.iter().map(shape)).take_while(|(a, b)| a == b);
    alike.count() >= 4
}

fn columns(line: &[u8]) -> usize {
    // Continuation bytes of UTF-8 take no column. Wide characters count as one, as `-J` is the norm
    // and this only a second chance.
    line.iter().filter(|b| **b & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Vec<String> {
        let frames = join(Frames::lines_of(text.as_bytes()));
        (0..frames.len()).map(|i| String::from_utf8_lossy(frames.line(i)).into_owned()).collect()
    }

    #[test]
    fn what_a_width_had_cut_is_joined() {
        let line =
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in hbm";
        let cut: Vec<&str> =
            [line.get(..37), line.get(37..74), line.get(74..)].into_iter().flatten().collect();
        assert_eq!(joined(&format!("short\n{}\nend", cut.join("\n"))), ["short", line, "end"]);
    }

    #[test]
    fn two_short_lines_stay_two() {
        for text in [
            "step 5/10 loss=2.345\nnothing",
            "step 1200/5000 loss=2.345\neval step 10/50",
            "train step 1200/5000 of run 3 loss=2.345\n7 of 10 shards are done",
            "reading the whole set\nof words",
        ] {
            assert_eq!(joined(text).len(), 2, "{text}");
        }
    }

    #[test]
    fn rows_of_one_width_stay_rows() {
        let rows = "step  10/200 loss=0.3511 grad=0.597\nstep  20/200 loss=0.2493 grad=0.467";
        assert_eq!(joined(rows).len(), 2);
        assert_eq!(joined(&format!("{rows}\nsomething else happened")).len(), 3);
        assert_eq!(joined("a\nb\nc").len(), 3);
    }

    #[test]
    fn a_blank_dropped_at_the_edge_comes_back() {
        let line = "Attempting to reserve 3.95G at the bottom of memory. That was not possible.";
        let cut = |width: usize| {
            let bytes: Vec<char> = line.chars().collect();
            let pieces = bytes.chunks(width).map(|piece| piece.iter().collect::<String>());
            pieces.map(|piece| piece.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
        };
        for width in 24..36 {
            let lines = joined(&cut(width));
            // Where the blank was is lost if every line lost one; the words must be whole.
            let words = |text: &str| text.replace(' ', "");
            assert_eq!(lines.len(), 1, "at {width} columns: {lines:?}");
            assert_eq!(words(&lines.concat()), words(line), "at {width} columns");
        }
    }
}
