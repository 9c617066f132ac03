//! Cells of a CSV file, which a spreadsheet may open: a text that would be a formula there gets a `'` in front, by which
//! spreadsheets take it for text.

use std::borrow::Cow;

/// What a formula begins with, also as it is typed in East Asian text.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// A cell as it is written.
pub fn written(cell: &str) -> Cow<'_, str> {
    if is_formula(cell) { Cow::Owned(format!("'{cell}")) } else { Cow::Borrowed(cell) }
}

/// A cell as it was before it was [written].
pub fn read(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| is_formula(rest)).unwrap_or(cell)
}

/// Whether a spreadsheet would take a cell for a formula, or a cell that already has our mark for one that we marked. A
/// number is none.
fn is_formula(cell: &str) -> bool {
    let is_number =
        cell.parse::<f64>().is_ok() && !cell.contains(|c: char| c.is_alphabetic() && c != 'e');
    cell.trim_start_matches('\'').starts_with(FORMULA) && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_becomes_text_and_comes_back() {
        for (cell, expected) in [
            ("=1+1", "'=1+1"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("-inf", "'-inf"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("＝1", "'＝1"),
            ("'=1", "''=1"),
            ("-3.25", "-3.25"),
            ("-1e-7", "-1e-7"),
            ("a=b", "a=b"),
            ("'tis", "'tis"),
            ("", ""),
        ] {
            assert_eq!(written(cell), expected);
            assert_eq!(read(expected), cell);
        }
    }
}
