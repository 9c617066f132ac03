//! Rows in columns, for a terminal.

use tpu_core::text;

/// A table: its head, then its rows. What others have written is harmless in it.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut all = vec![head.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()];
    all.extend(rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()));
    let wide = |column: usize| {
        all.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| text::width(cell))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(wide).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells.map(|(cell, width)| text::fit(cell, *width)).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    all.iter().map(line).collect()
}

fn plain(cell: &str) -> String {
    if cell.is_empty() { "-".to_owned() } else { text::escape(cell).into_owned() }
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
