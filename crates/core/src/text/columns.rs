//! Rows in columns, for terminals and plain text.

use super::{strip, width};

/// Columns filled to equal width, separated by two blanks; the last one is not filled.
pub fn columns(head: &[&str], rows: &[Vec<String>]) -> String {
    let widths = widths(head, rows);
    let mut out = String::new();
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line.push_str(cell);
            if i + 1 < row.len() {
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(visible(cell)) + 2));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The width of each column: that of its widest cell.
pub fn widths(head: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = head.iter().map(|cell| visible(cell)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(visible(cell));
        }
    }
    widths
}

/// Columns that a cell takes, its colours aside.
pub fn visible(cell: &str) -> usize {
    width(&String::from_utf8_lossy(&strip(cell.as_bytes())))
}
