// A new run: as a form, and as the job file that is sent. What another job was started with fills the form in; what no field
// shows of it stays as it is.
//
// Short names of configs are one user's own. They are shown and may be typed; what is sent has the long ones, so that they
// mean the same whoever runs it.

import { command, quote, words } from "./shell.js";

export const EMPTY = { user: "", target: "", dir: "1", configs: "", sweep: "", command: "", name: "", tag: "", rules: "", queue: "", priority: "", now: false };

/** How several values of a config become several runs. */
export const SWEEPS = [["", "one run"], ["each", "each with each"], ["zip", "first with first, …"]];

const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** What is wrong with what was typed, and what helps. */
export class Mistyped extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

/** A job file as one would type it into the form, with the short names of `aliases`. */
export function typed(file, aliases = {}) {
  const target = isMap(file.target) ? Object.values(file.target)[0] : file.target;
  const axes = isMap(file.array) ? Object.entries(file.array).map(([name, values]) => [name, [values].flat().join(",")]) : [];
  const short = (name) => Object.entries(aliases).find(([, full]) => full === name)?.[0] ?? name;
  const pairs = [...Object.entries(file.configs ?? {}), ...axes].map(([name, value]) => `${short(name)}=${value}`);
  const texts = { name: file.name, tag: file.tag, rules: file.rules, queue: file.queue, priority: file.priority };
  return {
    ...EMPTY,
    ...Object.fromEntries(Object.entries(texts).map(([field, value]) => [field, typeof value === "object" ? "" : String(value ?? "")])),
    target: [target ?? ""].flat().join(" "),
    dir: String(file.dir ?? ""),
    configs: quote(pairs),
    sweep: axes.length === 0 ? "" : file.zip ? "zip" : "each",
    command: Array.isArray(file.command) ? quote(file.command) : file.command ?? "",
  };
}

/** Names and values of what is typed, by their long names. What is said twice is as it was said last. */
function pairsOf(text, aliases) {
  const all = words(text);
  if (!all) throw new Mistyped("configs: a shell would read more in it than words", "quote it: name='a value; with signs'");
  return [...new Map(all.map((word) => {
    const at = word.indexOf("=");
    if (at < 1) throw new Mistyped(`configs: ${word} has no value`, "as in lr=0.01");
    const name = word.slice(0, at);
    return [Object.hasOwn(aliases, name) ? aliases[name] : name, word.slice(at + 1)];
  }))];
}

const isSeveral = (value) => value.includes(",") || /^\d+-\d+$/.test(value);

/** Whether a config that is typed has several values. */
export function hasSeveral(text) {
  return (words(text) ?? []).some((word) => word.includes("=") && isSeveral(word.slice(word.indexOf("=") + 1)));
}

/** What is sent: what the form says, and of what it was filled in from whatever no field shows. */
export function jobFile(form, from = null, aliases = {}) {
  const before = from ? typed(from, aliases) : { ...EMPTY, dir: "" };
  const file = { ...from };
  const differs = (field) => form[field] !== before[field];
  const say = (field, value) => {
    if (value === undefined || value === "" || value.length === 0) delete file[field];
    else file[field] = value;
  };
  for (const field of ["target", "name", "tag", "rules", "queue"]) if (differs(field)) say(field, form[field].trim());
  if (differs("priority")) say("priority", form.priority.trim() === "" ? "" : Number(form.priority));
  if (differs("dir")) {
    const dir = form.dir.trim();
    say("dir", /^\d+$/.test(dir) ? Number(dir) : dir);
    delete file.code;
  }
  if (differs("command")) {
    // Words are words, to which configs are added; anything else, and whatever was a line of the shell, is one.
    const line = form.command.trim();
    say("command", typeof from?.command === "string" ? line : command(line) ?? line);
  }
  if (differs("configs") || differs("sweep")) sayConfigs(file, form, { from, aliases });
  return { for_user: form.user, ...file };
}

function sayConfigs(file, form, { from, aliases }) {
  const pairs = pairsOf(form.configs, aliases);
  const was = isMap(from?.array) ? from.array : {};
  // What was one value is one as long as it stands as it stood, and what were several are those.
  const isAxis = ([name, value]) => form.sweep !== "" && isSeveral(value) && from?.configs?.[name] !== value;
  const isAsBefore = ([name, value]) => Object.hasOwn(was, name) && [was[name]].flat().join(",") === value;
  const axes = pairs.filter((pair) => form.sweep !== "" && (isAsBefore(pair) || isAxis(pair)));
  if (form.sweep !== "" && axes.length === 0) throw new Mistyped("a sweep has several values of something", "as in lr=0.1,0.01 seed=0-4");
  const single = pairs.filter((pair) => !axes.includes(pair));
  for (const key of ["configs", "zip"]) delete file[key];
  if (isMap(file.array)) for (const key of ["array", "max_parallel"]) delete file[key];
  if (single.length > 0) file.configs = Object.fromEntries(single);
  if (axes.length === 0) return;
  file.array = Object.fromEntries(axes.map((pair) => (isAsBefore(pair) ? [pair[0], was[pair[0]]] : pair)));
  if (from?.max_parallel) file.max_parallel = from.max_parallel;
  if (form.sweep === "zip") file.zip = true;
}

/** How many runs a file is; null of one that is one. */
export function runs(file) {
  if (!isMap(file.array)) return null;
  const many = (of) => {
    const [, first, last] = /^(\d+)-(\d+)$/.exec(of) ?? [];
    return first === undefined ? 1 : Number(last) - Number(first) + 1;
  };
  // A list has its values as they are; of a text, those between commas, and all of a range.
  const counts = Object.values(file.array).map((values) => (Array.isArray(values) ? values.length : String(values).split(",").reduce((sum, of) => sum + many(of), 0)));
  return file.zip ? Math.max(...counts) : counts.reduce((all, of) => all * of, 1);
}

/** What the members of a group were started with as the file of all of them: in what they differ are several values. */
export function together(files) {
  const [first] = files;
  if (files.length === 1) return first;
  // What waits has the file of all.
  const whole = files.find((file) => file.array !== undefined);
  if (whole) return whole;
  const rest = ({ configs: _, ...others }) => JSON.stringify(others);
  const names = [...new Set(files.flatMap((file) => Object.keys(file.configs ?? {})))];
  const apart = names.filter((name) => new Set(files.map((file) => file.configs?.[name])).size > 1);
  const values = (name) => files.map((file) => file.configs?.[name]);
  const isTypable = (value) => value !== undefined && value !== "" && !isSeveral(value);
  if (files.some((file) => rest(file) !== rest(first)) || apart.length === 0 || !apart.every((name) => values(name).every(isTypable))) {
    throw new Mistyped("these runs differ in more than the values of configs", "start one like a single of them, or their job file again: tpu submit FILE");
  }
  const own = apart.map((name) => [name, [...new Set(values(name))]]);
  const isEach = own.reduce((all, [, of]) => all * of.length, 1) === files.length;
  const configs = Object.fromEntries(Object.entries(first.configs).filter(([name]) => !apart.includes(name)));
  const array = Object.fromEntries(isEach ? own : apart.map((name) => [name, values(name)]));
  return { ...first, configs, array, ...(isEach ? {} : { zip: "true" }) };
}

/** A value of a job file in words. */
export function inWords(value) {
  if (Array.isArray(value)) return value.every((word) => typeof word === "string") ? quote(value) : value.map(inWords).join("; ");
  if (isMap(value)) return Object.entries(value).map(([name, of]) => `${name}=${Array.isArray(of) ? of.join(",") : inWords(of)}`).join(" ");
  return String(value);
}
