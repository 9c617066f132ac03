//! What keys are for: the groups in which the help lists them.

use super::Command as C;
use super::table::{Command, Context};

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyGroup {
    /// Seeing more of something.
    Look,
    /// Changing something, or answering.
    Act,
    /// What is shown, and in which order.
    Filter,
    /// Going somewhere else.
    Tabs,
    /// The screen itself.
    Program,
}

impl KeyGroup {
    /// Every group, in the order of the help.
    pub const ALL: [Self; 5] = [Self::Look, Self::Act, Self::Filter, Self::Tabs, Self::Program];

    /// Its head.
    pub fn title(self) -> &'static str {
        match self {
            Self::Look => "Look",
            Self::Act => "Act",
            Self::Filter => "Filter and order",
            Self::Tabs => "Tabs",
            Self::Program => "Program",
        }
    }

    /// What a command is for.
    pub fn of(command: Command) -> Self {
        match command {
            C::Up
            | C::Down
            | C::PageUp
            | C::PageDown
            | C::Top
            | C::Bottom
            | C::Left
            | C::Right
            | C::Back
            | C::Unfold
            | C::Fold
            | C::Details
            | C::Log
            | C::Explain
            | C::DryPlan
            | C::Diff
            | C::Broken
            | C::Evidence
            | C::Follow
            | C::Wrap
            | C::Copy
            | C::Pager
            | C::Measure
            | C::NextPlot
            | C::ZoomIn
            | C::ZoomOut
            | C::NextMetric
            | C::PreviousMetric => Self::Look,
            C::Resume
            | C::Rerun
            | C::Reapply
            | C::Solve
            | C::Drain
            | C::Undrain
            | C::Raise
            | C::Lower
            | C::HoldOrRelease
            | C::First
            | C::Kill
            | C::Clean
            | C::Tag
            | C::Rule
            | C::IgnoreError
            | C::NewRun
            | C::RunLike
            | C::Attach
            | C::Mark
            | C::MarkAll
            | C::Yes
            | C::No
            | C::Press
            | C::OtherButton
            | C::Toggle
            | C::ByWidth
            | C::Complete
            | C::NextField
            | C::PreviousField
            | C::Accept => Self::Act,
            C::Filter
            | C::Search
            | C::NextHit
            | C::PreviousHit
            | C::LogFilter
            | C::Worker
            | C::AllUsers
            | C::SortLeft
            | C::SortRight
            | C::SortReverse
            | C::Group
            | C::ChooseColumns
            | C::NextBy
            | C::PreviousBy
            | C::LongerPeriod
            | C::ShorterPeriod => Self::Filter,
            C::JobsTab
            | C::TargetsTab
            | C::QueueTab
            | C::EventsTab
            | C::PlanTab
            | C::UsageTab
            | C::NextTab
            | C::PreviousTab => Self::Tabs,
            C::CommandLine
            | C::Monitor
            | C::Mouse
            | C::Theme
            | C::Help
            | C::Redraw
            | C::Suspend
            | C::Quit => Self::Program,
        }
    }
}

impl Context {
    /// Where its keys work, behind "Keys".
    pub fn place(self) -> &'static str {
        match self {
            Self::List => "in the list",
            Self::Detail => "in the detail",
            Self::Targets => "in the targets",
            Self::Queue => "in the queue",
            Self::Events => "in the events",
            Self::Plan => "in the plan",
            Self::Usage => "in the usage",
            Self::Log => "in the log",
            Self::Help => "in the help",
            Self::HelpSearch => "while you search the help",
            Self::Page => "on a page",
            Self::Confirm => "in a question",
            Self::Choice => "in a choice",
            Self::Columns => "in the choice of columns",
            Self::Filter => "while you type a filter",
            Self::Search => "while you type a search",
            Self::LogFilter => "while you type a filter of the log",
            Self::Tag => "while you type a tag",
            Self::CommandLine => "while you type a command",
            Self::Form => "in the form",
        }
    }
}
