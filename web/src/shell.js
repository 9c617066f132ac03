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

/** Words as one types them: in quotes only where a shell would take them for something else. */
export const quote = (words) => words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

/** What stands for the value of an argument that has none. */
export const GIVEN = "✓";

/** The arguments of a job by their names, short as people say them: `learning_rate`, and not `--config.training.learning_rate`. */
function named(job) {
  const all = words(job.arguments ?? "") ?? (job.arguments ?? "").split(/\s+/).filter(Boolean);
  return all.map((word) => {
    const at = word.indexOf("=");
    return at < 0 ? [word, GIVEN] : [word.slice(0, at).replace(/^-+/, "").split(".").at(-1), word.slice(at + 1)];
  });
}

/** In which arguments jobs differ: each with the value that each of them has, empty where it has none. */
export function differing(jobs) {
  const all = jobs.map((job) => new Map(named(job)));
  const names = [...new Set(all.flatMap((of) => [...of.keys()]))];
  const rows = names.map((name) => [name, all.map((of) => of.get(name) ?? "")]);
  const isOf = (name) => all.filter((of) => of.has(name)).length;
  return rows.filter(([name, values]) => new Set(values).size > 1 || isOf(name) < jobs.length);
}
