// Text from outside, made harmless to look at: what a job prints is text and nothing else. Preact puts it into text nodes,
// so that no markup runs; here goes what a terminal would act on, and what turns the order of a line around.

/** Escape sequences: CSI, OSC and the like to their end, else to the end of the line, and two-byte ones. */
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*(?:[@-~]|$)|[\]PX^_][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])|\u009b[0-?]*[ -/]*[@-~]/gm;
/** Controls but tab and line feed, and what turns a line around or hides in it. */
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

/** One line: sequences go, of what was drawn over the last drawing stays, other controls are shown as escapes. */
export function line(text) {
  const plain = text.replace(SEQUENCES, "");
  const drawn = plain.includes("\r") ? plain.replace(/\r+$/, "").split("\r").at(-1) : plain;
  return escape(drawn);
}

/** What would act on the reader, shown as an escape. */
export function escape(text) {
  return String(text).replace(UNSAFE, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** How long: 5s, 12m, 3h 04m, 2d 06h, as on the screen. */
export function span(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  const two = (n) => String(n).padStart(2, "0");
  if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
  return `${Math.floor(s / 86400)}d ${two(Math.floor((s % 86400) / 3600))}h`;
}

/** Seconds since an instant in RFC 3339. */
export function since(at, now = Date.now()) {
  return (now - Date.parse(at)) / 1000;
}

/** A figure in as few digits as say something. */
export function figure(value) {
  if (value == null) return "";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** A day and a time, or the time alone where it is of today. */
export function moment(at, now = new Date()) {
  const date = new Date(at);
  if (date.toDateString() === now.toDateString()) return TIME.format(date);
  return `${DAY.format(date)} ${TIME.format(date)}`;
}

// Made once: to make one takes longer than to write a hundred times with it.
const TIME = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat([], { month: "short", day: "numeric" });

/** One of some, or several. */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}
