//! Rows in columns, for a terminal.

use tpu_core::text::columns::columns;
use tpu_core::text::escape;

/// A table: its head, then its rows. What others have written is harmless in it.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    columns(head, &rows)
}

fn plain(cell: &str) -> String {
    if cell.is_empty() { "-".to_owned() } else { escape(cell).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [vec!["long name".to_owned(), String::new()], vec!["x\n".to_owned(), "1".to_owned()]];
        assert_eq!(table(&["A", "B"], &rows), "A          B\nlong name  -\nx\\n        1\n");
    }
}
