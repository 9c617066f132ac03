//! What a cleaning did or would do, in words.

use crate::front::old_code::CodeGone;
use crate::observe::orphans::Closing;
use tpu_core::model::ids::UserName;
use tpu_core::text::{self, counted};

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
        let mut text = format!(
            "Archived {}, closed {}{beside}.",
            counted(self.archived.len(), "job"),
            counted(windows.len(), "window")
        );
        if self.code.copies > 0 {
            let CodeGone { copies, bytes } = self.code;
            let (copies, bytes) = (counted(copies, "old job"), text::bytes(bytes));
            text += &format!(" Removed the code of {copies} ({bytes}).");
        }
        if self.whole.copies > 0 {
            text += &format!(" Removed {}.", self.whole_in_words());
        }
        text
    }

    /// The copies that are removed whole.
    pub fn whole_in_words(&self) -> String {
        let CodeGone { copies, bytes } = self.whole;
        let copies = if copies == 1 { "1 copy".to_owned() } else { format!("{copies} copies") };
        format!("{copies} of code with what the jobs wrote there ({})", text::bytes(bytes))
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
            [one] => format!("Would archive job {one} of {user}.\n"),
            several => format!("Would archive jobs {} of {user}.\n", several.join(", ")),
        };
        if self.whole.copies > 0 {
            text += &format!("Would remove {}.\n", self.whole_in_words());
        }
        for closing in &self.closed {
            text += &format!("Would close {}.\n", closing.in_words());
        }
        for remark in self.remarks() {
            text += &format!("{remark}\n");
        }
        text
    }
}
