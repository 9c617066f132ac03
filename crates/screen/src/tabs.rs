//! The tabs: one table, read by the keys, the mouse and the line that shows them.

use super::keys::Context;

/// One view of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// The list of jobs, and one of them in detail.
    #[default]
    Jobs,
    /// The targets.
    Targets,
    /// What waits in the queues.
    Queue,
    /// What has happened.
    Events,
    /// What will happen by itself.
    Plan,
    /// What ran, and what it cost.
    Usage,
}

/// The tabs from left to right: which, its name, and what keys mean there.
pub const TABLE: [(Tab, &str, Context); 6] = [
    (Tab::Jobs, "Jobs", Context::List),
    (Tab::Targets, "Targets", Context::Targets),
    (Tab::Queue, "Queue", Context::Queue),
    (Tab::Events, "Events", Context::Events),
    (Tab::Plan, "Plan", Context::Plan),
    (Tab::Usage, "Usage", Context::Usage),
];

impl Tab {
    /// Its place in [`TABLE`].
    pub fn place(self) -> usize {
        TABLE.iter().position(|(tab, ..)| *tab == self).unwrap_or(0)
    }

    /// What keys mean there.
    pub fn context(self) -> Context {
        TABLE.iter().find(|(tab, ..)| *tab == self).map_or(Context::List, |(.., context)| *context)
    }

    /// The tab so many places further, round the end.
    #[must_use]
    pub fn moved(self, by: usize) -> Self {
        let at = (self.place() + by) % TABLE.len();
        TABLE.get(at).map_or(self, |(tab, ..)| *tab)
    }
}
