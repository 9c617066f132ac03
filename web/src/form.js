// A new run: as a form, and as the job file that is sent. What another job was started with fills the form in; what no field
// shows of it stays as it is.

import { quote, words } from "./shell.js";

export const EMPTY = { user: "", target: "", dir: "1", configs: "", sweep: "", command: "", name: "", tag: "", rules: "", queue: "", priority: "", now: false };

/** How several values of a config become several runs. */
export const SWEEPS = [["", "one run"], ["each", "each with each"], ["zip", "first with first, …"]];

const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** A job file as one would type it into the form. */
export function typed(file) {
  const target = isMap(file.target) ? Object.values(file.target)[0] : file.target;
  const axes = isMap(file.array) ? Object.entries(file.array).map(([name, values]) => [name, [values].flat().join(",")]) : [];
  const pairs = [...Object.entries(file.configs ?? {}), ...axes].map(([name, value]) => `${name}=${value}`);
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

/** What is wrong with what was typed, and what helps. */
export class Mistyped extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

function pairsOf(text) {
  const all = words(text);
  if (!all) throw new Mistyped("configs: a shell would read more in it than words", "quote it: name='a value; with signs'");
  // What is said twice is as it was said last.
  return [...new Map(all.map((word) => {
    const at = word.indexOf("=");
    if (at < 1) throw new Mistyped(`configs: ${word} has no value`, "as in lr=0.01");
    return [word.slice(0, at), word.slice(at + 1)];
  }))];
}

/** Whether a config that is typed has several values. */
export function hasSeveral(text) {
  return (words(text) ?? []).some((word) => word.includes("=") && isSeveral(word.slice(word.indexOf("=") + 1)));
}

const isSeveral = (value) => value.includes(",") || /^\d+-\d+$/.test(value);

/** What is sent: what the form says, and of what it was filled in from whatever no field shows. */
export function jobFile(form, from = null) {
  const before = from ? typed(from) : { ...EMPTY, dir: "" };
  const file = { ...from };
  const differs = (field) => form[field].trim() !== before[field];
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
    // Words are words, to which configs are added; anything else is a line of the shell.
    const command = form.command.trim();
    say("command", words(command) ?? command);
  }
  if (differs("configs") || differs("sweep")) {
    const pairs = pairsOf(form.configs);
    const axes = pairs.filter(([, value]) => form.sweep !== "" && isSeveral(value));
    if (form.sweep !== "" && axes.length === 0) throw new Mistyped("a sweep has several values of something", "as in lr=0.1,0.01 seed=0-4");
    const single = pairs.filter((pair) => !axes.includes(pair));
    for (const key of ["configs", "zip"]) delete file[key];
    if (isMap(file.array)) for (const key of ["array", "max_parallel"]) delete file[key];
    if (single.length > 0) file.configs = Object.fromEntries(single);
    if (axes.length > 0) {
      file.array = Object.fromEntries(axes);
      if (from?.max_parallel) file.max_parallel = from.max_parallel;
      if (form.sweep === "zip") file.zip = true;
    }
  }
  return { for_user: form.user, ...file };
}

/** How many runs a file is. */
export function runs(file) {
  if (!isMap(file.array)) return null;
  const counts = Object.values(file.array).map((values) => [values].flat().flatMap((of) => String(of).split(",")).reduce((sum, of) => {
    const [, from, to] = /^(\d+)-(\d+)$/.exec(of) ?? [];
    return sum + (from === undefined ? 1 : Number(to) - Number(from) + 1);
  }, 0));
  return file.zip ? Math.max(...counts) : counts.reduce((all, of) => all * of, 1);
}

/** What the members of a group were started with as the file of all of them: in what they differ are several values. */
export function together(files) {
  const [first] = files;
  const keys = [...new Set(files.flatMap((file) => Object.keys(file.configs ?? {})))];
  const values = (key) => files.map((file) => file.configs?.[key] ?? "");
  const apart = keys.filter((key) => new Set(values(key)).size > 1);
  if (apart.length === 0) return first;
  const own = apart.map((key) => [key, [...new Set(values(key))]]);
  const isEach = own.reduce((all, [, of]) => all * of.length, 1) === files.length;
  const configs = Object.fromEntries(Object.entries(first.configs).filter(([key]) => !apart.includes(key)));
  const array = Object.fromEntries(isEach ? own : apart.map((key) => [key, values(key)]));
  return { ...first, configs, array, ...(isEach ? {} : { zip: "true" }) };
}

/** A value of a job file in words. */
export function inWords(value) {
  if (Array.isArray(value)) return value.every((word) => typeof word === "string") ? quote(value) : value.map(inWords).join("; ");
  if (isMap(value)) return Object.entries(value).map(([name, of]) => `${name}=${inWords(of)}`).join(" ");
  return String(value);
}
