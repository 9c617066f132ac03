//! What keys do and where: one line for each, in the order of the bar and of the help.

use Command as C;

/// Declares the contexts once: the type, all of them in order, and their names for the table.
macro_rules! contexts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What the person is doing, which decides what keys mean.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Context {
            $($(#[$doc])* $name,)*
        }

        /// Every context.
        pub(super) const ALL: &[Context] = &[$(Context::$name),*];

        use Context::{$($name),*};
    };
}

contexts! {
    /// Choosing in the list of jobs.
    List,
    /// Looking at one job in full width.
    Detail,
    /// Choosing in the list of targets.
    Targets,
    /// Choosing among what waits.
    Queue,
    /// Reading what has happened.
    Events,
    /// Reading what will happen.
    Plan,
    /// Looking at what ran.
    Usage,
    /// Reading the whole output of a job.
    Log,
    /// Reading the help.
    Help,
    /// Typing what to look for in the help.
    HelpSearch,
    /// Reading what a command has said, or a comparison.
    Page,
    /// Answering a question.
    Confirm,
    /// Choosing one of several answers.
    Choice,
    /// Choosing the columns of the list.
    Columns,
    /// Typing a filter of a list.
    Filter,
    /// Typing what to search for in the log.
    Search,
    /// Typing which lines of the log to show.
    LogFilter,
    /// Typing a tag.
    Tag,
    /// Typing a command.
    CommandLine,
    /// Filling in the form of a new run.
    Form,
}

/// What a person can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// One up.
    Up,
    /// One down.
    Down,
    /// One screenful up.
    PageUp,
    /// One screenful down.
    PageDown,
    /// To the first.
    Top,
    /// To the last; in the log this follows again.
    Bottom,
    /// The tab of jobs.
    JobsTab,
    /// The tab of targets.
    TargetsTab,
    /// The tab of what waits.
    QueueTab,
    /// The tab of events.
    EventsTab,
    /// The tab of plans.
    PlanTab,
    /// The tab of what ran.
    UsageTab,
    /// Rows stand for the next thing.
    NextBy,
    /// Rows stand for the thing before.
    PreviousBy,
    /// Counts further back.
    LongerPeriod,
    /// Counts less far back.
    ShorterPeriod,
    /// Bars stand for hours, or for cost.
    Measure,
    /// Shows the next plot of those that do not fit at once.
    NextPlot,
    /// The next tab.
    NextTab,
    /// The tab before.
    PreviousTab,
    /// Shows one job in full width; on the other tabs, goes to the jobs that the row is about.
    Details,
    /// Opens the whole output.
    Log,
    /// Continues from the checkpoint.
    Resume,
    /// Starts from scratch.
    Rerun,
    /// Makes the target anew, then continues (asks).
    Reapply,
    /// Finds what is wrong with the target and sets it right (asks).
    Solve,
    /// Lets nothing new begin on a machine (asks).
    Drain,
    /// Lets jobs begin there again.
    Undrain,
    /// Makes what waits more urgent.
    Raise,
    /// Makes it less urgent.
    Lower,
    /// Holds what waits, or lets it begin again.
    HoldOrRelease,
    /// Lets it begin before all others of its priority.
    First,
    /// Stops jobs, and takes what waits out of the queue (asks).
    Kill,
    /// Archives what has ended (asks).
    Clean,
    /// Sets the tag.
    Tag,
    /// Sets the rule.
    Rule,
    /// Says that the error is none (asks).
    IgnoreError,
    /// Says why a job is as it is.
    Explain,
    /// Says what an action would do.
    DryPlan,
    /// Compares two marked runs.
    Diff,
    /// Opens the form of a new run.
    NewRun,
    /// Opens it as the job was started, to be changed.
    RunLike,
    /// Starts or stops the daemon.
    Monitor,
    /// Goes to the tmux window.
    Attach,
    /// Marks or unmarks a job.
    Mark,
    /// Marks every job that is shown, or takes those marks back.
    MarkAll,
    /// Shows the earlier attempts of a lineage.
    Unfold,
    /// Hides them.
    Fold,
    /// Shows everybody's jobs, or one user's again.
    AllUsers,
    /// Sorts by the column to the left of the present one.
    SortLeft,
    /// Sorts by the column to the right.
    SortRight,
    /// Turns the order round.
    SortReverse,
    /// Groups by the next thing.
    Group,
    /// Opens the choice of columns.
    ChooseColumns,
    /// Shows a column or does not.
    Toggle,
    /// Leaves the columns to the width of the terminal again.
    ByWidth,
    /// Types a filter.
    Filter,
    /// Types a command.
    CommandLine,
    /// Releases the mouse or takes it again.
    Mouse,
    /// To the newest job that broke.
    Broken,
    /// The next theme.
    Theme,
    /// Types a search.
    Search,
    /// To the next hit.
    NextHit,
    /// To the previous hit.
    PreviousHit,
    /// Types which lines to show.
    LogFilter,
    /// Shows the lines of the next worker only.
    Worker,
    /// Breaks long lines or cuts them.
    Wrap,
    /// To the line that says what broke.
    Evidence,
    /// Copies what is shown, or what something is called.
    Copy,
    /// Opens the output in a pager.
    Pager,
    /// Shows a shorter time or fewer steps, in more detail.
    ZoomIn,
    /// Shows a longer time or more steps.
    ZoomOut,
    /// Draws the next metric.
    NextMetric,
    /// Draws the one before.
    PreviousMetric,
    /// Scrolls to the left, or back in time or steps.
    Left,
    /// Scrolls to the right, or on in time or steps.
    Right,
    /// Follows new output or stops following.
    Follow,
    /// Confirms.
    Yes,
    /// Declines.
    No,
    /// Presses the marked button.
    Press,
    /// Marks the other button.
    OtherButton,
    /// Completes what is typed.
    Complete,
    /// The next field.
    NextField,
    /// The field before.
    PreviousField,
    /// Takes what was typed.
    Accept,
    /// Goes back.
    Back,
    /// Opens the help.
    Help,
    /// Draws everything again.
    Redraw,
    /// Stops the program until `fg`.
    Suspend,
    /// Leaves.
    Quit,
}

/// Whether a command makes sense at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Always.
    Nothing,
    /// Any job, even if the filter hides them all.
    Jobs,
    /// A selected job.
    Job,
    /// A selected job that failed.
    Failure,
    /// A selected job with earlier attempts, or what is in a group or stands for one.
    Attempts,
    /// Something selected that waits in a queue.
    Waiting,
    /// A selected row of the tab.
    Row,
    /// A selected job whose loss was seen more than once.
    Curve,
    /// Something that was counted and has a price.
    Cost,
    /// Plots that do not fit at once.
    Plots,
    /// Jobs of more than one user in the file.
    Others,
    /// A filter, marks or a message to take back.
    Something,
    /// More to read than the screen holds.
    More,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// What it does.
    pub command: Command,
    /// The name under which the setting `keys` knows it.
    pub name: &'static str,
    /// Where it works.
    pub contexts: &'static [Context],
    /// Keys, the first being the one that is shown first.
    pub keys: &'static [&'static str],
    /// The word in the bar; empty when it stands only in the help.
    pub bar: &'static str,
    /// What it does, in the help.
    pub help: &'static str,
    /// What must be there for it.
    pub needs: Needs,
}

const JOBS: &[Context] = &[List, Detail];
const BOARDS: &[Context] = &[Targets, Queue, Events, Plan];
const NOT_JOBS: &[Context] = &[Targets, Queue, Events, Plan, Usage];
const TABS: &[Context] = &[List, Detail, Targets, Queue, Events, Plan, Usage];
const LOOKS: &[Context] = &[List, Detail, Targets, Queue, Events, Plan, Usage, Log];
const WAITING: &[Context] = &[Queue, List, Detail];
const PROMPTS: &[Context] = &[Filter, Search, LogFilter, Tag, CommandLine, HelpSearch];
const TYPING: &[Context] = &[Filter, Search, LogFilter, Tag, CommandLine, Form];
const DIALOGS: &[Context] = &[Confirm, Choice, Columns, Page];
const PAGES: &[Context] = &[Help, Page];

/// A line of the table, in short.
const fn line(
    (command, name): (Command, &'static str),
    contexts: &'static [Context],
    keys: &'static [&'static str],
    (bar, help): (&'static str, &'static str),
    needs: Needs,
) -> Binding {
    Binding { command, name, contexts, keys, bar, help, needs }
}

/// Every key. The order is that of the bar and of the help.
#[rustfmt::skip] // One line per key reads as the table that it is.
pub const TABLE: &[Binding] = &[
    line((C::Details, "details"), &[List], &["enter"], ("details", "show the job in full width"), Needs::Job),
    line((C::Unfold, "unfold"), &[List], &["right"], ("open", "show its earlier attempts, its members, or what the group holds"), Needs::Attempts),
    line((C::Back, "back"), &[Detail], &["esc", "enter"], ("list", "back to the list"), Needs::Nothing),
    line((C::NextMetric, "metric"), &[Detail], &["]"], ("chart", "draw the next of what it measures: loss, speed, what it prints"), Needs::Curve),
    line((C::PreviousMetric, "metric-before"), &[Detail], &["["], ("", "draw the one before"), Needs::Curve),
    line((C::ZoomIn, "chart-closer"), &[Detail], &["+"], ("closer", "fewer steps in the chart, around the cursor"), Needs::Curve),
    line((C::ZoomOut, "chart-further"), &[Detail], &["-"], ("", "more steps in the chart"), Needs::Curve),
    line((C::Left, "chart-left"), &[Detail], &["left"], ("", "move the cursor of the chart to the left"), Needs::Curve),
    line((C::Right, "chart-right"), &[Detail], &["right"], ("", "move it to the right"), Needs::Curve),
    line((C::Log, "log"), JOBS, &["l"], ("log", "the whole output, with search"), Needs::Job),
    line((C::Resume, "resume"), JOBS, &["r"], ("resume", "continue from the last checkpoint"), Needs::Job),
    line((C::Rerun, "rerun"), JOBS, &["R"], ("rerun", "start again from scratch (asks where that loses steps)"), Needs::Job),
    line((C::Kill, "kill"), JOBS, &["x"], ("kill", "stop the marked jobs, or this one (asks first)"), Needs::Job),
    line((C::Mark, "mark"), &[List, Detail], &["space"], ("mark", "mark or unmark it, for resume, rerun, kill and compare"), Needs::Job),
    line((C::Raise, "raise"), &[Queue, List], &["+"], ("sooner", "make what waits more urgent"), Needs::Waiting),
    line((C::Lower, "lower"), &[Queue, List], &["-"], ("later", "make what waits less urgent"), Needs::Waiting),
    line((C::HoldOrRelease, "hold"), WAITING, &["h"], ("hold", "hold what waits, or let it begin again"), Needs::Waiting),
    line((C::First, "first"), WAITING, &["f"], ("first", "let it begin before all others of its priority"), Needs::Waiting),
    line((C::Kill, "take-out"), &[Queue], &["x"], ("take out", "take it out of the queue (asks first)"), Needs::Row),
    line((C::Explain, "explain-wait"), &[Queue], &["e"], ("explain", "say why it waits"), Needs::Row),
    line((C::Clean, "clean"), JOBS, &["c"], ("clean", "archive what has ended (asks first)"), Needs::Job),
    line((C::NewRun, "new-run"), &[List, Detail, Targets, Queue], &["n"], ("new", "start a new run: a form, with the plan before it starts"), Needs::Nothing),
    line((C::RunLike, "run-like"), JOBS, &["N"], ("", "start one like it: its form, filled in, to be changed"), Needs::Job),
    line((C::Details, "go-to"), BOARDS, &["enter"], ("its jobs", "go to the jobs that the row is about"), Needs::Row),
    line((C::ZoomIn, "zoom-in"), &[Events], &["+"], ("closer", "a shorter time in the timelines, around the chosen event"), Needs::Row),
    line((C::ZoomOut, "zoom-out"), &[Events], &["-"], ("", "a longer time in the timelines"), Needs::Row),
    line((C::Left, "earlier"), &[Events], &["left"], ("", "the event before of the same job"), Needs::Row),
    line((C::Right, "later"), &[Events], &["right"], ("", "the next event of the same job"), Needs::Row),
    line((C::NextBy, "usage-by"), &[Usage], &["b", "right"], ("by", "count by the next: user, target, type, zone, tag, week, kind"), Needs::Nothing),
    line((C::PreviousBy, "usage-by-before"), &[Usage], &["B", "left"], ("", "count by the one before"), Needs::Nothing),
    line((C::LongerPeriod, "usage-longer"), &[Usage], &["p"], ("period", "the last 7, 30 or 90 days, or all time"), Needs::Nothing),
    line((C::ShorterPeriod, "usage-shorter"), &[Usage], &["P"], ("", "a shorter period"), Needs::Nothing),
    line((C::NextPlot, "usage-plot"), &[Usage], &["v"], ("plots", "the next of the plots that do not fit at once"), Needs::Plots),
    line((C::Measure, "usage-measure"), &[Usage], &["c"], ("cost/hours", "let bars stand for cost, or for hours"), Needs::Cost),
    line((C::Filter, "filter"), TABS, &["/"], ("filter", "show only what matches"), Needs::Nothing),
    line((C::AllUsers, "all-users"), TABS, &["0"], ("users", "everybody's jobs, or one user's again"), Needs::Others),
    line((C::Explain, "explain"), JOBS, &["e"], ("explain", "explain its status"), Needs::Job),
    line((C::Attach, "attach"), JOBS, &["a"], ("attach", "go to its tmux window; back: Ctrl-b d, in the same tmux Ctrl-b L"), Needs::Job),
    line((C::Tag, "tag"), JOBS, &["t"], ("tag", "give it a tag"), Needs::Job),
    line((C::CommandLine, "command"), TABS, &[":"], ("command", "type any command of tpu"), Needs::Nothing),
    line((C::DryPlan, "dry-plan"), &[List, Detail, Targets, Plan], &["p"], ("what if", "say what an action would do, and do nothing"), Needs::Row),
    line((C::Rule, "rule"), JOBS, &["u"], ("rule", "set what happens by itself when it fails"), Needs::Job),
    line((C::IgnoreError, "ignore-error"), JOBS, &["i"], ("", "say that its error is none (asks first)"), Needs::Failure),
    line((C::Reapply, "reapply"), &[List, Detail, Targets], &["A"], ("", "delete its target and create it again, then resume (asks first)"), Needs::Row),
    line((C::Solve, "solve"), &[List, Detail, Targets], &["S"], ("", "find what is wrong with its target, and set it right (asks first)"), Needs::Row),
    line((C::Drain, "drain"), &[Targets], &["d"], ("drain", "let nothing new begin on the machine (asks first)"), Needs::Row),
    line((C::Undrain, "undrain"), &[Targets], &["u"], ("undrain", "let jobs begin on the machine again"), Needs::Row),
    line((C::Broken, "broken"), TABS, &["E"], ("", "to the newest job that broke, whatever is shown"), Needs::Nothing),
    line((C::MarkAll, "mark-all"), &[List], &["*"], ("", "mark all that are shown, or take those marks back"), Needs::Jobs),
    line((C::Copy, "copy-name"), &[List, Detail, Targets], &["y"], ("", "copy its name, a directory, its arguments, what broke"), Needs::Row),
    line((C::Diff, "diff"), JOBS, &["="], ("", "compare the two marked runs"), Needs::Job),
    line((C::Monitor, "monitor"), TABS, &["D"], ("", "start the daemon, or stop it (asks first)"), Needs::Nothing),
    line((C::JobsTab, "tab-jobs"), TABS, &["1"], ("", "the jobs"), Needs::Nothing),
    line((C::TargetsTab, "tab-targets"), TABS, &["2"], ("", "the targets: how they are and who is on them"), Needs::Nothing),
    line((C::QueueTab, "tab-queue"), TABS, &["3"], ("", "what waits: in which order, and why"), Needs::Nothing),
    line((C::EventsTab, "tab-events"), TABS, &["4"], ("", "what has happened"), Needs::Nothing),
    line((C::PlanTab, "tab-plan"), TABS, &["5"], ("", "what will happen by itself"), Needs::Nothing),
    line((C::UsageTab, "tab-usage"), TABS, &["6"], ("", "what ran: hours, cost, waits, failures"), Needs::Nothing),
    line((C::NextTab, "next-tab"), TABS, &["tab"], ("tabs", "the next tab"), Needs::Nothing),
    line((C::PreviousTab, "previous-tab"), TABS, &["backtab"], ("", "the tab before"), Needs::Nothing),
    line((C::Fold, "fold"), &[List], &["left"], ("", "hide them; then fold the group that it is in"), Needs::Attempts),
    line((C::SortLeft, "sort-left"), &[List], &["<"], ("", "sort by the column to the left"), Needs::Jobs),
    line((C::SortRight, "sort-right"), &[List], &[">"], ("", "sort by the column to the right"), Needs::Jobs),
    line((C::SortReverse, "sort-reverse"), &[List], &["s"], ("", "turn the order round"), Needs::Jobs),
    line((C::Group, "group"), &[List], &["v"], ("", "group by target, by directory, by user, or not"), Needs::Jobs),
    line((C::ChooseColumns, "columns"), &[List], &["C"], ("", "choose the columns of the list"), Needs::Jobs),
    line((C::Down, "down"), TABS, &["j", "down"], ("", "next row"), Needs::Row),
    line((C::Up, "up"), TABS, &["k", "up"], ("", "previous row"), Needs::Row),
    line((C::Top, "top"), TABS, &["g", "home"], ("", "first row"), Needs::Row),
    line((C::Bottom, "bottom"), TABS, &["G", "end"], ("", "last row"), Needs::Row),
    line((C::PageDown, "page-down"), TABS, &["pgdn", "ctrl-f", "ctrl-d"], ("", "a screenful down"), Needs::Row),
    line((C::PageUp, "page-up"), TABS, &["pgup", "ctrl-b", "ctrl-u"], ("", "a screenful up"), Needs::Row),
    line((C::Back, "clear"), &[List], &["esc"], ("", "take back message, filter, marks"), Needs::Something),
    line((C::Back, "to-jobs"), NOT_JOBS, &["esc"], ("jobs", "take back the filter, then back to the jobs"), Needs::Nothing),
    // The log.
    line((C::Search, "log-search"), &[Log], &["/"], ("search", "search: a regular expression, capitals count if there are any"), Needs::Nothing),
    line((C::NextHit, "next-hit"), &[Log], &["n"], ("next", "next hit"), Needs::Nothing),
    line((C::PreviousHit, "previous-hit"), &[Log], &["N"], ("previous", "previous hit"), Needs::Nothing),
    line((C::Follow, "follow"), &[Log], &["f"], ("follow", "follow new output, or stop following"), Needs::Nothing),
    line((C::LogFilter, "log-filter"), &[Log], &["&"], ("filter", "show only lines that match; ! before it: that do not"), Needs::Nothing),
    line((C::Evidence, "evidence"), &[Log], &["e"], ("evidence", "to the line that says what broke"), Needs::Nothing),
    line((C::Wrap, "wrap"), &[Log], &["w"], ("wrap", "break long lines, or cut them"), Needs::Nothing),
    line((C::Worker, "worker"), &[Log], &["W"], ("worker", "one worker's lines, the next one's, all"), Needs::Nothing),
    line((C::Copy, "copy"), &[Log], &["y"], ("copy", "copy the hit, else the lines on the screen"), Needs::Nothing),
    line((C::Pager, "pager"), &[Log], &["v"], ("pager", "open it in $PAGER or $EDITOR"), Needs::Nothing),
    line((C::CommandLine, "log-command"), &[Log], &[":"], ("", "type any command of tpu"), Needs::Nothing),
    line((C::Down, "log-down"), &[Log], &["j", "down"], ("", "a line down"), Needs::Nothing),
    line((C::Up, "log-up"), &[Log], &["k", "up"], ("", "a line up (stops following)"), Needs::Nothing),
    line((C::PageDown, "log-page-down"), &[Log], &["pgdn", "space", "ctrl-f", "ctrl-d"], ("", "a screenful down"), Needs::Nothing),
    line((C::PageUp, "log-page-up"), &[Log], &["pgup", "b", "ctrl-b", "ctrl-u"], ("", "a screenful up"), Needs::Nothing),
    line((C::Top, "log-top"), &[Log], &["g", "home"], ("top", "to the first line"), Needs::Nothing),
    line((C::Bottom, "log-bottom"), &[Log], &["G", "end"], ("end", "to the last line, and follow"), Needs::Nothing),
    line((C::Left, "log-left"), &[Log], &["left", "h"], ("", "to the left"), Needs::Nothing),
    line((C::Right, "log-right"), &[Log], &["right", "l"], ("", "to the right"), Needs::Nothing),
    line((C::Back, "log-back"), &[Log], &["esc", "q"], ("back", "back to the jobs"), Needs::Nothing),
    // Pages.
    line((C::Down, "page-line-down"), PAGES, &["j", "down"], ("", "down"), Needs::Nothing),
    line((C::Up, "page-line-up"), PAGES, &["k", "up"], ("", "up"), Needs::Nothing),
    line((C::PageDown, "page-screen-down"), PAGES, &["pgdn", "space", "ctrl-d"], ("more", "a screenful down"), Needs::More),
    line((C::PageUp, "page-screen-up"), PAGES, &["pgup", "b", "ctrl-u"], ("", "a screenful up"), Needs::Nothing),
    line((C::Search, "help-search"), &[Help], &["/"], ("search", "show only what matches, here and elsewhere"), Needs::Nothing),
    line((C::Back, "help-back"), &[Help], &["esc", "q", "?", "f1"], ("back", "take back the search, then back"), Needs::Nothing),
    line((C::Copy, "copy-page"), &[Page], &["y"], ("copy", "copy all of it"), Needs::Nothing),
    line((C::Back, "page-back"), &[Page], &["esc", "q", "enter"], ("back", "back"), Needs::Nothing),
    // Questions.
    line((C::Yes, "yes"), &[Confirm], &["y"], ("yes", "yes"), Needs::Nothing),
    line((C::No, "no"), &[Confirm], &["n", "esc", "q"], ("no", "no"), Needs::Nothing),
    line((C::Press, "press"), &[Confirm], &["enter"], ("the marked button", "the marked button"), Needs::Nothing),
    line((C::OtherButton, "other-button"), &[Confirm], &["tab", "left", "right", "backtab"], ("other button", "mark the other button"), Needs::Nothing),
    line((C::Down, "confirm-down"), &[Confirm], &["j", "down"], ("", "more of the list"), Needs::Nothing),
    line((C::Up, "confirm-up"), &[Confirm], &["k", "up"], ("", "back up the list"), Needs::Nothing),
    line((C::Accept, "choose"), &[Choice], &["enter"], ("take it", "take the marked one"), Needs::Nothing),
    line((C::Back, "choose-none"), &[Choice], &["esc", "q"], ("leave it", "leave it as it was"), Needs::Nothing),
    line((C::Down, "choice-down"), &[Choice], &["j", "down", "tab"], ("", "the next one"), Needs::Nothing),
    line((C::Up, "choice-up"), &[Choice], &["k", "up", "backtab"], ("", "the one before"), Needs::Nothing),
    line((C::Toggle, "column"), &[Columns], &["space"], ("show or not", "show the column, or do not"), Needs::Nothing),
    line((C::Accept, "keep-columns"), &[Columns], &["enter"], ("keep", "keep the columns, here and in later sessions"), Needs::Nothing),
    line((C::ByWidth, "columns-by-width"), &[Columns], &["w"], ("by width", "leave the columns to the width of the terminal"), Needs::Nothing),
    line((C::Back, "columns-back"), &[Columns], &["esc", "q", "C"], ("leave it", "leave the columns as they were"), Needs::Nothing),
    line((C::Down, "columns-down"), &[Columns], &["j", "down", "tab"], ("", "the next column"), Needs::Nothing),
    line((C::Up, "columns-up"), &[Columns], &["k", "up", "backtab"], ("", "the column before"), Needs::Nothing),
    // Typing.
    line((C::Accept, "accept"), PROMPTS, &["enter"], ("take it", "take what is typed"), Needs::Nothing),
    line((C::Back, "cancel"), PROMPTS, &["esc"], ("leave it", "leave it as it was"), Needs::Nothing),
    line((C::Down, "filter-down"), &[Filter], &["down"], ("", "next row"), Needs::Nothing),
    line((C::Up, "filter-up"), &[Filter], &["up"], ("", "previous row"), Needs::Nothing),
    line((C::Complete, "complete"), &[CommandLine], &["tab"], ("complete", "complete the word"), Needs::Nothing),
    line((C::Up, "earlier-command"), &[CommandLine], &["up"], ("", "the command before"), Needs::Nothing),
    line((C::Down, "later-command"), &[CommandLine], &["down"], ("", "the command after"), Needs::Nothing),
    line((C::NextField, "next-field"), &[Form], &["tab"], ("next field", "the next field"), Needs::Nothing),
    line((C::PreviousField, "previous-field"), &[Form], &["backtab"], ("", "the field before"), Needs::Nothing),
    line((C::Down, "form-down"), &[Form], &["down"], ("", "the next proposal"), Needs::Nothing),
    line((C::Up, "form-up"), &[Form], &["up"], ("", "the proposal before"), Needs::Nothing),
    line((C::Accept, "form-accept"), &[Form], &["enter"], ("plan, then start", "take the proposal; show the plan; start"), Needs::Nothing),
    line((C::Back, "form-back"), &[Form], &["esc"], ("leave it", "start nothing"), Needs::Nothing),
    // Everywhere.
    line((C::Theme, "theme"), LOOKS, &["T"], ("", "the next theme"), Needs::Nothing),
    line((C::Mouse, "mouse"), LOOKS, &["m"], ("", "release the mouse to select text, or take it again"), Needs::Nothing),
    line((C::Help, "help"), LOOKS, &["?", "f1"], ("help", "this list"), Needs::Nothing),
    line((C::Help, "help-here"), DIALOGS, &["?", "f1"], ("help", "this list"), Needs::Nothing),
    line((C::Help, "help-typing"), TYPING, &["f1"], ("", "this list"), Needs::Nothing),
    line((C::Quit, "quit"), TABS, &["q"], ("quit", "leave; the jobs go on"), Needs::Nothing),
    line((C::Quit, "leave"), ALL, &["ctrl-c"], ("", "leave at once; the jobs go on"), Needs::Nothing),
    line((C::Suspend, "suspend"), ALL, &["ctrl-z"], ("", "stop this screen until `fg`"), Needs::Nothing),
    line((C::Redraw, "redraw"), ALL, &["ctrl-l"], ("", "look again and draw everything anew"), Needs::Nothing),
];
