//! Markdown as plain text that a person reads in a terminal.

use tpu_core::text;

/// The same text without its marks: headings are underlined, code is indented, addresses stand behind their words.
pub(super) fn plain(markdown: &str) -> String {
    let mut out = String::new();
    let mut is_code = false;
    for line in markdown.lines() {
        let line = text::harmless(line);
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
        } else if is_code {
            out += &format!("    {line}\n");
        } else if let Some(heading) = heading(trimmed) {
            let heading = inline(heading);
            out += &format!("{heading}\n{}\n", "-".repeat(text::width(&heading)));
        } else if let Some(item) = ["* ", "+ "].iter().find_map(|mark| trimmed.strip_prefix(mark)) {
            let indent = line.len() - trimmed.len();
            out += &format!("{}- {}\n", " ".repeat(indent), inline(item));
        } else {
            out += &format!("{}\n", inline(&line));
        }
    }
    out
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let marks = line.len() - text.len();
    let text = text.strip_prefix(' ').filter(|_| (1..=6).contains(&marks))?;
    Some(text.trim_end_matches('#').trim())
}

/// One line without the marks of its words.
fn inline(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['`', '*', '[', '_']) {
        let (before, marked) = rest.split_at(at);
        out += before;
        let between = |mark: &str| {
            marked.strip_prefix(mark)?.split_once(mark).filter(|(inner, _)| !inner.is_empty())
        };
        let is_word_inside = before.ends_with(|c: char| c.is_alphanumeric());
        if let Some((code, after)) = between("`") {
            out += code;
            rest = after;
        } else if let Some((strong, after)) = between("**").or_else(|| between("__")) {
            out += &inline(strong);
            rest = after;
        } else if let Some((label, address, after)) = link(marked) {
            out += &inline(label);
            if label != address {
                out += &format!(" ({address})");
            }
            rest = after;
        } else if let Some((soft, after)) =
            between("*").filter(|(inner, _)| !is_word_inside && !inner.starts_with(' '))
        {
            out += &inline(soft);
            rest = after;
        } else {
            let mark = marked.chars().next().map_or(0, char::len_utf8);
            let (mark, after) = marked.split_at(mark);
            out += mark;
            rest = after;
        }
    }
    out + rest
}

/// `[label](address)`.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (address, after) = rest.split_once(')')?;
    (!label.contains('[')).then_some((label, address, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_and_words_stay() {
        let text = "# Training ##\n\nHas **CUDA 11** and `python3 -c 'a*b'`, see [the docs](https://x.lab/a_b).\n\n* one\n  + _two_\n\n```sh\nls *_* # code\n```\n2 * 3 = 6, snake_case_name";
        let plain = plain(text);
        let expected = "Training\n--------\n\nHas CUDA 11 and python3 -c 'a*b', see the docs (https://x.lab/a_b).\n\n- one\n  - _two_\n\n    ls *_* # code\n2 * 3 = 6, snake_case_name\n";
        assert_eq!(plain, expected);
    }

    #[test]
    fn nothing_of_it_reaches_the_terminal_as_an_order() {
        assert!(!plain("a\u{1b}]0;x\u{7}b").contains('\u{1b}'));
    }
}
