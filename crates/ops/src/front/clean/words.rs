//! What a cleaning did or would do, in words.

use crate::observe::orphans::Closing;
use tpu_core::model::ids::UserName;
use tpu_core::text::counted;

use super::Cleaned;

impl Cleaned {
    /// In words.
    pub fn summary(&self) -> String {
        let (windows, panes): (Vec<&Closing>, Vec<&Closing>) =
            self.closed.iter().partition(|closing| closing.whole);
        let beside = match panes.len() {
            0 => String::new(),
            n => format!(" and {} in windows that stay", counted(n, "pane")),
        };
        format!(
            "Archived {}, closed {}{beside}.",
            counted(self.archived.len(), "job"),
            counted(windows.len(), "window")
        )
    }

    /// What stays and why, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let kept = self.kept.iter().map(|kept| format!("Kept {}: {}", kept.job, kept.reason));
        let left = self.left.iter().map(|left| format!("Left open: {}", left.in_words()));
        kept.chain(left).collect()
    }

    /// The same for one that was only tried, a line for each part.
    pub fn would_in_words(&self, user: &UserName) -> String {
        let names: Vec<String> = self.archived.iter().map(|id| id.window.to_string()).collect();
        let mut text = match names.as_slice() {
            [] => "Would archive nothing.\n".to_owned(),
            [one] => format!("Would archive window {one} of {user}.\n"),
            several => format!("Would archive windows {} of {user}.\n", several.join(", ")),
        };
        for closing in &self.closed {
            text += &format!("Would close {}.\n", closing.in_words());
        }
        for remark in self.remarks() {
            text += &format!("{remark}\n");
        }
        text
    }
}
