//! `docs/cloudmesh.md` has every command that `cms job help` prints, and every state.

use super::clusters::STATES;
use super::lab;

#[test]
fn the_page_has_every_command_and_every_state() {
    let page = include_str!("../../docs/cloudmesh.md");
    let help = lab().tpu("cms job help").exits(0).stdout;
    let mut lines = help.lines();
    let mut rows = 0;
    while let Some(typed) = lines.next() {
        let Some(typed) = typed.strip_prefix("  cms ") else { continue };
        let does = lines.next().unwrap().trim();
        let row = format!("| `cms {}` | {does} |", typed.replace('|', "\\|"));
        assert!(page.contains(&row), "no row {row}");
        rows += 1;
    }
    assert!(rows > 20, "{help}");
    for (state, here) in STATES.iter().filter(|(state, _)| !state.starts_with("epoch")) {
        let row = format!("| `{state}` | {here}");
        assert!(page.contains(&row), "no row {row}");
    }
}
