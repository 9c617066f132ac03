// Curves of losses, of one run or of several: zoom by dragging, back by a double click, and what was where under the
// pointer. Drawn by uPlot: small, kept, and quick with many points. Below stands the same as a table, for who sees none.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { ask } from "../api.js";
import { live } from "../live.js";
import { lowest } from "../rows.js";
import { differing } from "../shell.js";
import { key, shown } from "../status.js";
import { figure, line } from "../text.js";
import { go } from "../ui.js";
import { Failed, Loading } from "./parts.jsx";

/** Curves are told apart by colour and by dash, so that nobody needs the colour. */
const LOOKS = [["--curve-1", []], ["--curve-2", [8, 4]], ["--curve-3", [2, 3]], ["--curve-4", [10, 3, 2, 3]], ["--curve-5", [5, 2]], ["--curve-6", [1, 2]]];

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Between two questions for the same curves. */
const BEAT = 2000;

/** Curves of jobs as series over the same steps. */
export function aligned(curves) {
  const steps = [...new Set(curves.flatMap((curve) => curve.points.map((p) => p.step)))].sort((a, b) => a - b);
  const at = new Map(steps.map((step, index) => [step, index]));
  const series = curves.map((curve) => {
    const values = new Array(steps.length).fill(undefined);
    for (const { step, loss } of curve.points) values[at.get(step)] = loss;
    return values;
  });
  return [steps, ...series];
}

/** A moving mean, of so many points to each side. */
export function smooth(points, wide) {
  if (wide === 0) return points;
  return points.map((point, at) => {
    const near = points.slice(Math.max(0, at - wide), at + wide + 1);
    return { step: point.step, loss: near.reduce((sum, p) => sum + p.loss, 0) / near.length };
  });
}

/** The curves of these jobs, asked for again while they go on. */
export function Curves({ jobs }) {
  const ids = jobs.map(key).join(" ");
  const steps = jobs.map((job) => job.progress?.step ?? job.progress?.epoch ?? "").join(" ");
  const [curves, set] = useState(null);
  const [error, fail] = useState(null);
  const again = useRef(() => {});
  useEffect(() => {
    let gone = false;
    let asking = false;
    let wanted = false;
    let timer = 0;
    let due = 0;
    // An answer that is on its way is waited for, however much has been printed since: over a slow network there would
    // never be one. Then it is asked for anew.
    again.current = () => {
      wanted = true;
      if (!asking && !timer) timer = setTimeout(look, Math.max(0, due - Date.now()));
    };
    async function look() {
      [asking, wanted, timer, due] = [true, false, 0, Date.now() + BEAT];
      try {
        const said = await Promise.all(jobs.map((job) => ask(`/jobs/${encodeURIComponent(job.user)}/${job.window}/curve`)));
        if (gone) return;
        set(said.map((of, at) => ({ name: key(jobs[at]), points: of.attempts.flatMap((attempt) => attempt.points.map((p) => ({ ...p, window: attempt.window }))), attempts: of.attempts.map((attempt) => attempt.window) })));
        fail(null);
      } catch (error) {
        if (!gone) fail(error);
      }
      asking = false;
      if (wanted && !gone) again.current();
    }
    look();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [ids]);
  useEffect(() => again.current(), [steps]);
  if (error && !curves) return <Failed error={error} what="curve" />;
  if (!curves) return <div class="plot"><Loading what="the curve" /></div>;
  if (curves.every((curve) => curve.points.length < 2)) return <p class="dim none-yet">{curves.some((curve) => curve.points.length > 0) ? "One loss has been printed: a curve needs two." : "No loss has been printed yet."}</p>;
  return <Plot curves={curves} />;
}

function Plot({ curves }) {
  const place = useRef(null);
  const plot = useRef(null);
  const [log, isLog] = useState(false);
  const [wide, setWide] = useState(0);
  const [seen, see] = useState(null);
  const [zoomed, isZoomed] = useState(false);
  const drawn = useMemo(() => aligned(curves.map((curve) => ({ ...curve, points: smooth(byStep(curve.points), wide) }))), [curves, wide]);
  const names = curves.map((curve) => curve.name).join(" ");
  const theme = useTheme();
  useEffect(() => {
    const element = place.current;
    const grid = { stroke: css("--line"), width: 1 };
    const axis = { stroke: css("--dim"), grid, ticks: grid, font: "11px system-ui", size: 46 };
    const options = {
      width: element.clientWidth,
      height: element.clientHeight,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: true }, focus: { prox: 24 }, points: { size: 7 } },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      axes: [{ ...axis, size: 30, values: (_, all) => all.map((v) => (v >= 10_000 ? `${v / 1000}k` : v)) }, axis],
      series: [{}, ...curves.map((curve, at) => {
        const [colour, dash] = LOOKS[at % LOOKS.length];
        return { label: curve.name, stroke: css(colour), width: 1.75, dash: curves.length > 1 ? dash : [], spanGaps: true, points: { show: false } };
      })],
      hooks: {
        setCursor: [(of) => see(of.cursor.idx == null ? null : { step: of.data[0][of.cursor.idx], values: of.data.slice(1).map((values) => near(values, of.cursor.idx)) })],
        setScale: [(of, scale) => scale === "x" && isZoomed(of.scales.x.min > of.data[0][0] || of.scales.x.max < of.data[0].at(-1))],
      },
    };
    plot.current = new uPlot(options, drawn, element);
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: element.clientHeight }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [names, log, theme]);
  useEffect(() => {
    plot.current?.setData(drawn, !zoomed);
  }, [drawn]);
  const steps = drawn[0];
  return (
    <figure class="curve" data-part="curve">
      <figcaption>
        <ul class="legend">
          {curves.map((curve, at) => (
            <li key={curve.name}>
              <svg width="22" height="8" aria-hidden="true"><line x1="0" x2="22" y1="4" y2="4" class={`curve-${(at % LOOKS.length) + 1}`} stroke-width="2" stroke-dasharray={curves.length > 1 ? LOOKS[at % LOOKS.length][1].join(" ") : ""} /></svg>
              {line(curve.name)} <b class="num">{figure(seen?.values[at] ?? curve.points.at(-1)?.loss)}</b>
            </li>
          ))}
          <li class="dim num">{seen ? `step ${figure(seen.step)}` : `at step ${figure(steps.at(-1))}`}</li>
        </ul>
        <span class="tools">
          {zoomed && <button type="button" class="chip" onClick={() => plot.current.setScale("x", { min: steps[0], max: steps.at(-1) })}>all</button>}
          <button type="button" class="chip" aria-pressed={wide > 0} onClick={() => setWide(wide === 0 ? 3 : wide === 3 ? 12 : 0)}>smooth{wide > 0 ? ` ${wide * 2 + 1}` : ""}</button>
          <button type="button" class="chip" aria-pressed={log} onClick={() => isLog(!log)}>log scale</button>
        </span>
      </figcaption>
      <div class="plot" ref={place} role="img" aria-label={`loss over steps: ${curves.map((curve) => `${curve.name} from ${figure(curve.points[0]?.loss)} to ${figure(curve.points.at(-1)?.loss)}`).join("; ")}`} />
    </figure>
  );
}

/** By rising step: what a later attempt did again counts as it did it. */
function byStep(points) {
  const all = new Map(points.map((point) => [point.step, point]));
  return [...all.values()].sort((a, b) => a.step - b.step);
}

function near(values, at) {
  for (let off = 0; off < 20; off += 1) {
    if (values[at - off] != null) return values[at - off];
    if (values[at + off] != null) return values[at + off];
  }
  return undefined;
}

function useTheme() {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const now = () => `${document.documentElement.dataset.theme} ${media.matches}`;
  const [theme, set] = useState(now);
  useEffect(() => {
    const hear = () => set(now());
    media.addEventListener("change", hear);
    const watch = new MutationObserver(hear);
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      media.removeEventListener("change", hear);
      watch.disconnect();
    };
  }, []);
  return theme;
}

/** Several runs beside each other: curves, and in what they differ. */
export function Compare({ ids }) {
  const { byKey, loaded } = live.use();
  const jobs = ids.map((id) => byKey.get(id)).filter(Boolean);
  if (jobs.length < 2) return loaded ? <p class="empty dim">Two runs that are there are compared; mark them in the jobs.</p> : <Loading what="the jobs" />;
  const best = lowest(jobs);
  const facts = [
    ["status", (job) => shown(job).word],
    ["loss", (job) => figure(job.progress?.loss)],
    ["step", (job) => (job.progress?.step != null ? `${job.progress.step}${job.progress.total ? ` / ${job.progress.total}` : ""}` : "")],
    ["steps/s", (job) => figure(job.progress?.steps_per_s)],
    ["learning rate", (job) => figure(job.progress?.lr)],
    ["target", (job) => job.target],
    ["directory", (job) => job.dir.path],
    ["tag", (job) => job.tags ?? ""],
    ["attempt", (job) => `${job.lineage.indexOf(job.window) + 1} of ${job.lineage.length}`],
  ].map(([name, of]) => [name, jobs.map((job) => String(of(job) ?? ""))]);
  const own = differing(jobs);
  const isSame = ([, values]) => new Set(values).size === 1;
  const loss = facts.find(([name]) => name === "loss");
  // What was asked for is not said once more as it is printed.
  const isAsked = ([name, values]) => name === "learning rate" && own.some(([, of]) => of.every((value, at) => Number(value) === Number(values[at])));
  const apart = [...own, ...facts.filter((fact) => !isSame(fact) && !isAsked(fact))];
  const same = facts.filter((fact) => isSame(fact) && fact[1][0] !== "");
  const names = jobs.map((job) => job.tags ?? job.name ?? job.title ?? key(job));
  return (
    <section class="page compare" aria-label="Compared runs">
      <header class="title-of-job"><button type="button" class="back" onClick={() => go("jobs")} aria-label="back to the jobs">‹</button>
      <h1>{(new Set(names).size < names.length ? jobs.map(key) : names).map(line).join(" · ")}</h1></header>
      <Curves jobs={jobs} />
      <div class="scroll" tabindex={0} role="region" aria-label="In what they differ">
        <table class="facts apart">
          <thead><tr><th scope="col">run</th>{apart.map(([name], n) => <th scope="col" key={n}>{line(name)}</th>)}</tr></thead>
          <tbody>
            {jobs.map((job, at) => (
              <tr key={key(job)} class={job === best ? "best" : ""}><th scope="row"><a href={`#/job/${encodeURIComponent(job.user)}/${job.window}`}>{key(job)}</a></th>
                {apart.map(([, values], n) => <td key={n}>{line(values[at])}{apart[n] === loss && job === best && <span class="dim"> lowest</span>}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {same.length > 0 && <p class="dim same">The same for all: {same.map(([name, [value]]) => `${name} ${line(value)}`).join(", ")}.</p>}
    </section>
  );
}
