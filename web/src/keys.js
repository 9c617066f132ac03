// Keys: one table of what they do and where, as the screen's own table has it. The help is made of it, and so is what a key
// does, so that neither says what the other does not do.

/** `at`: where it works: everywhere, in lists, about a job, in the log, in the queue. */
export const KEYS = [
  { key: "?", at: "all", does: "help", group: "Page", says: "this list" },
  { key: "1", at: "all", does: "tab jobs", group: "Tabs", says: "the jobs" },
  { key: "2", at: "all", does: "tab targets", group: "Tabs", says: "the targets and hosts: how they are and who is on them" },
  { key: "3", at: "all", does: "tab queue", group: "Tabs", says: "what waits: in which order, and why" },
  { key: "4", at: "all", does: "tab events", group: "Tabs", says: "what has happened" },
  { key: "5", at: "all", does: "tab plan", group: "Tabs", says: "what will happen by itself" },
  { key: "6", at: "all", does: "tab usage", group: "Tabs", says: "what ran: hours, cost, waits, failures" },
  { key: "n", at: "all", not: "log", does: "new", group: "Act", says: "start a new run: a form, with the plan before it starts" },
  { key: "N", at: "job", does: "like", group: "Act", says: "start a new run as this one was, with changes" },
  { key: ":", at: "all", does: "command", group: "Page", says: "do anything by its name" },
  { key: "0", at: "all", does: "users", group: "Filter", says: "everybody's jobs, or one user's" },
  { key: "T", at: "all", does: "theme", group: "Page", says: "dark, light, or as the machine has it" },
  { key: "/", at: "list", does: "filter", group: "Filter", says: "show only what matches; in the log: search" },
  { key: "j", also: ["ArrowDown"], at: "list", does: "down", group: "Look", says: "next row" },
  { key: "k", also: ["ArrowUp"], at: "list", does: "up", group: "Look", says: "previous row" },
  { key: "g", also: ["Home"], at: "list", does: "top", group: "Look", says: "first row" },
  { key: "G", also: ["End"], at: "list", does: "bottom", group: "Look", says: "last row" },
  { key: "PageDown", at: "list", does: "page-down", group: "Look", says: "a screenful down" },
  { key: "PageUp", at: "list", does: "page-up", group: "Look", says: "a screenful up" },
  { key: "Enter", at: "list", does: "open", group: "Look", says: "show the job, or the jobs that the row is about" },
  { key: "ArrowRight", at: "jobs", does: "unfold", group: "Look", says: "show its earlier attempts, or its members" },
  { key: "ArrowLeft", at: "jobs", does: "fold", group: "Look", says: "hide them" },
  { key: " ", label: "Space", at: "jobs", does: "mark", group: "Act", says: "mark or unmark it, for acts on several and to compare" },
  { key: "<", at: "jobs", does: "sort-left", group: "Look", says: "sort by the column to the left" },
  { key: ">", at: "jobs", does: "sort-right", group: "Look", says: "sort by the column to the right" },
  { key: "s", at: "jobs", does: "sort-reverse", group: "Look", says: "turn the order round" },
  { key: "v", at: "jobs", does: "group", group: "Look", says: "group by target, by directory, or not" },
  { key: "E", at: "jobs", does: "broken", group: "Filter", says: "to the newest that broke" },
  { key: "l", at: "job", does: "log", group: "Look", says: "the whole output, with search" },
  { key: "r", at: "job", does: "act resume", group: "Act", says: "continue from the last checkpoint" },
  { key: "R", at: "job", does: "act rerun", group: "Act", says: "start again from scratch" },
  { key: "x", at: "job", does: "act kill", group: "Act", says: "stop the marked jobs, or this one; out of the queue what waits" },
  { key: "c", at: "job", does: "act clean", group: "Act", says: "archive what has ended" },
  { key: "P", at: "job", does: "act pause", group: "Act", says: "stop it at a checkpoint, and hold it" },
  { key: "Q", at: "job", does: "act requeue", group: "Act", says: "stop it and put it back into the queue" },
  { key: "+", at: "job", does: "raise", group: "Act", says: "make what waits more urgent" },
  { key: "-", at: "job", does: "lower", group: "Act", says: "make what waits less urgent" },
  { key: "h", at: "job", does: "hold", group: "Act", says: "hold what waits, or let it begin again" },
  { key: "f", at: "job", does: "act first", group: "Act", says: "let it begin before all others of its priority" },
  { key: "t", at: "job", does: "tag", group: "Act", says: "give it a tag" },
  { key: "u", at: "job", does: "rule", group: "Act", says: "set what happens by itself when it fails" },
  { key: "i", at: "job", does: "act ignore", group: "Act", says: "say that its error is none" },
  { key: "e", at: "job", does: "explain", group: "Look", says: "say why it is as it is; in the log: to the line that says what broke" },
  { key: "p", at: "job", does: "dry-plan", group: "Act", says: "say what would be done with it, and do nothing" },
  { key: "=", at: "job", does: "compare", group: "Look", says: "compare the marked runs" },
  { key: "y", at: "job", does: "copy", group: "Act", says: "copy its name; in the log: what is shown" },
  { key: "A", at: "target", does: "reapply", group: "Act", says: "delete the target and make it again" },
  { key: "f", at: "log", does: "log-follow", group: "Log", says: "follow new output, or stop following" },
  { key: "n", at: "log", does: "log-next", group: "Log", says: "next hit" },
  { key: "N", at: "log", does: "log-previous", group: "Log", says: "previous hit" },
  { key: "e", at: "log", does: "log-evidence", group: "Log", says: "to the line that says what broke" },
  { key: "w", at: "log", does: "log-wrap", group: "Log", says: "break long lines, or cut them" },
  { key: "W", at: "log", does: "log-worker", group: "Log", says: "one worker's lines, the next one's, all" },
  { key: "&", at: "log", does: "log-filter", group: "Log", says: "only lines that match; ! before it: that do not" },
  { key: "/", at: "log", does: "log-search", group: "Log", says: "search" },
  { key: "y", at: "log", does: "log-copy", group: "Log", says: "copy what is shown" },
  { key: "g", at: "log", also: ["Home"], does: "log-top", group: "Log", says: "to the first line" },
  { key: "G", at: "log", also: ["End"], does: "log-bottom", group: "Log", says: "to the last line, and follow" },
  { key: "b", at: "usage", does: "usage-by", group: "Usage", says: "count by the next: user, target, type, zone, tag, week, kind" },
  { key: "p", at: "usage", does: "usage-period", group: "Usage", says: "the last 7, 30 or 90 days, or all time" },
  { key: "Escape", label: "Esc", at: "all", does: "back", group: "Page", says: "close, take back filter and marks, go back" },
];

/** Where a key may work on each view, the nearest first. */
const WITHIN = {
  jobs: ["jobs", "job", "list", "all"],
  job: ["job", "list", "all"],
  log: ["log", "all"],
  targets: ["target", "list", "all"],
  queue: ["job", "list", "all"],
  events: ["list", "all"],
  plan: ["job", "list", "all"],
  usage: ["usage", "list", "all"],
};

/** What a key means where somebody is. */
export function meaning(pressed, view) {
  for (const at of WITHIN[view] ?? ["all"]) {
    const found = KEYS.find((of) => of.at === at && of.not !== view && (of.key === pressed || of.also?.includes(pressed)));
    if (found) return found.does;
  }
  return undefined;
}

/** Whether a view has a key. */
export function works(binding, view) {
  return (WITHIN[view] ?? ["all"]).includes(binding.at);
}
