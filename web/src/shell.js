// Words and lines of a shell: what is typed as words, words as one types them, and what tells the arguments of jobs apart.

import parse from "shell-quote/parse.js";

/** Words as a shell would take them; null where it would do more than take words. */
export function words(text) {
  let all;
  try {
    all = parse(text, (name) => ({ name }));
  } catch {
    return null;
  }
  return all.every((word) => typeof word === "string") ? all : null;
}

/** What a shell knows by itself, and no program has as its name. */
const BUILT_IN = new Set(". source cd export set unset eval exec ulimit umask alias if for while until case function time ! { [[ ((".split(" "));

/** Words of a command; null where it is a line that takes a shell: more than words, or words that it reads in its own way. */
export function command(text) {
  const all = words(text);
  if (!all || /[\n`~{}]/.test(text)) return null;
  return all.length > 0 && (BUILT_IN.has(all[0]) || /^\w+=/.test(all[0])) ? null : all;
}

/** Words as one types them: in quotes only where a shell would take them for something else. */
export const quote = (words) => words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

/** What stands for the value of an argument that has none. */
export const GIVEN = "✓";

/** The arguments of a job by their names: `--lr=1`, `--lr 1`, `lr=1`, `--fast`, and what stands by itself. */
function named(job) {
  const all = words(job.arguments ?? "") ?? (job.arguments ?? "").split(/\s+/).filter(Boolean);
  const found = new Map();
  for (let at = 0; at < all.length; at += 1) {
    const word = all[at];
    const mark = word.indexOf("=");
    if (mark > 0) found.set(word.slice(0, mark).replace(/^-+/, ""), word.slice(mark + 1));
    else if (/^-+[a-z]/i.test(word) && all[at + 1] !== undefined && !/^-|=/.test(all[at + 1])) found.set(word.replace(/^-+/, ""), all[(at += 1)]);
    else found.set(word.replace(/^-+/, ""), GIVEN);
  }
  return found;
}

/**
 * In which arguments jobs differ: each with the value that each of them has, empty where it has none. Names are short as people
 * say them, `learning_rate` and not `config.training.learning_rate`, where no two of them would be called the same.
 */
export function differing(jobs) {
  const all = jobs.map(named);
  const names = [...new Set(all.flatMap((of) => [...of.keys()]))];
  const apart = names.filter((name) => new Set(all.map((of) => of.get(name))).size > 1);
  const short = (name) => name.split(".").at(-1);
  const isAlone = (name) => apart.every((other) => other === name || short(other) !== short(name));
  return apart.map((name) => [isAlone(name) ? short(name) : name, all.map((of) => of.get(name) ?? "")]);
}
