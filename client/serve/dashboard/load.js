/* How much is going on, plotted every two seconds for as long as somebody looks: from the list of sessions and from
 * /metrics. Without the latter nobody knows how long cells take, and those of one-shots are not counted. */
import * as api from "./api.js";
import { bytes, h, put, seconds } from "./dom.js";

const EVERY = 2;
const KEPT = 300;
const HIGH = 130;

/* ---- Prometheus' text format, as far as it is needed ---- */

const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export function samplesOf(text) {
  const all = [];
  for (const line of text.split("\n")) {
    const match = line.startsWith("#") ? null : line.match(SAMPLE);
    if (!match) continue;
    const labels = Object.fromEntries([...(match[2] ?? "").matchAll(LABEL)].map((it) => [it[1], it[2]]));
    all.push({ name: match[1], labels, value: match[3] === "+Inf" ? Infinity : Number(match[3]) });
  }
  return all;
}

/* Of the histogram of cells: how many took at most as long as each bound, over all labels. */
const CELLS = /^lair_\w*cell\w*_seconds_bucket$/;

function buckets(samples) {
  const found = new Map();
  const metric = samples.find((it) => CELLS.test(it.name))?.name;
  for (const it of samples) {
    if (it.name !== metric) continue;
    const bound = it.labels.le === "+Inf" ? Infinity : Number(it.labels.le);
    found.set(bound, (found.get(bound) ?? 0) + it.value);
  }
  return [...found].sort((a, b) => a[0] - b[0]);
}

/* The quantile of what has come between two looks, by straight lines within a bucket. */
export function quantile(before, after, part) {
  const had = new Map(before);
  const now = after.map(([bound, value]) => [bound, value - (had.get(bound) ?? 0)]);
  const total = now.length ? now[now.length - 1][1] : 0;
  if (!(total > 0)) return null;
  let [from, below] = [0, 0];
  for (const [bound, value] of now) {
    if (value >= part * total) return bound === Infinity ? from : from + ((bound - from) * (part * total - below)) / Math.max(value - below, 1e-9);
    [from, below] = [bound, value];
  }
  return from;
}

/* ---- plots ---- */

const WHOLE = [1, 2, 5].flatMap((it) => [...Array(7).keys()].map((i) => it * 10 ** i)).sort((a, b) => a - b);
const DOUBLED = [...Array(45).keys()].map((i) => 2 ** i);

const PLOTS = [
  { title: "Cells a second", series: [["Cells", "--accent"]], say: (it) => (it < 10 ? it.toFixed(1) : String(Math.round(it))) },
  { title: "Cell time", series: [["50 %", "--accent"], ["99 %", "--warn"]], say: seconds },
  { title: "Memory", series: [["Memory", "--accent"]], say: bytes, steps: DOUBLED },
  { title: "Sessions", series: [["Sessions", "--accent"]], say: (it) => String(Math.round(it)), steps: WHOLE },
];

function colour(variable) {
  const probe = h("span", { class: `probe ${variable.slice(2)}` });
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

class Plot {
  constructor(kind) {
    this.kind = kind;
    this.values = kind.series.map(() => h("b", {}));
    this.box = h("div", { class: "plot-box" });
    this.node = h("figure", { class: "card plot" },
      h("figcaption", {}, h("span", {}, kind.title),
        h("span", { class: "legend" }, kind.series.map(([label, variable], i) =>
          h("span", {}, kind.series.length > 1 ? [h("i", { class: `probe ${variable.slice(2)}` }), `${label} `] : null, this.values[i])))),
      this.box);
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.box);
  }

  make() {
    const soft = colour("--faint");
    const line = colour("--line");
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    this.plot?.destroy();
    this.plot = new uPlot({
      width: Math.max(120, this.box.clientWidth), height: HIGH, legend: { show: false }, cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
      padding: [8, 8, 0, 0],
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.15 : 1] } },
      axes: [{ ...axis, space: 70, values: (_, at) => at.map((it) => new Date(it * 1000).toLocaleTimeString("en-GB")), size: 24 },
             { ...axis, space: 30, size: 58, incrs: this.kind.steps, values: (_, at) => at.map((it) => this.kind.say(it)) }],
      series: [{}, ...this.kind.series.map(([label, variable]) => {
        const stroke = colour(variable);
        return { label, stroke, width: 1.75, points: { show: false }, spanGaps: true, fill: this.kind.series.length === 1 ? stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.1)") : undefined };
      })],
      hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)] },
    }, this.data ?? [[], ...this.kind.series.map(() => [])], this.box);
  }

  fit() {
    if (this.plot && this.box.clientWidth > 0) this.plot.setSize({ width: this.box.clientWidth, height: HIGH });
  }

  tell(index) {
    this.values.forEach((node, i) => {
      const series = this.data?.[i + 1] ?? [];
      const value = series[index ?? series.length - 1];
      put(node, value === null || value === undefined ? "–" : this.kind.say(value));
    });
  }

  show(data) {
    this.data = data;
    if (!this.plot) this.make();
    else this.plot.setData(data);
    this.tell(null);
  }

  leave() {
    this.watcher.disconnect();
    this.plot?.destroy();
  }
}

/* What was seen stays while one looks at other pages. */
const seen = [];
let last = null;

/* How many cells have begun since. A branch has the number of its parent's, so of a new session one counts. */
function begun(before, sessions) {
  return sessions.reduce((sum, it) => sum + Math.max(0, before.has(it.birth) ? it.cells - before.get(it.birth) : Math.min(it.cells, 1)), 0);
}

function look(sessions, samples) {
  const now = Date.now() / 1000;
  const it = { now, cells: new Map(sessions.map((it) => [it.birth, it.cells])), buckets: buckets(samples), total: samples.find((one) => one.name === "lair_cells_total")?.value };
  if (last && now - last.now < 60) {
    const cells = it.total >= last.total ? it.total - last.total : begun(last.cells, sessions);
    seen.push([now, cells / (now - last.now), quantile(last.buckets, it.buckets, 0.5), quantile(last.buckets, it.buckets, 0.99),
               sessions.reduce((sum, one) => sum + one.memory, 0), sessions.length]);
  }
  if (seen.length > KEPT) seen.shift();
  last = it;
}

export class Load {
  constructor() {
    this.plots = PLOTS.map((it) => new Plot(it));
    this.node = h("section", { class: "load", "aria-label": "Load" }, h("h2", {}, "Load"), h("div", { class: "plots" }, this.plots.map((it) => it.node)));
    this.themed = () => this.plots.forEach((it) => it.plot && it.make());
    addEventListener("lair-theme", this.themed);
    if (seen.length) requestAnimationFrame(() => this.draw());
  }

  draw() {
    const column = (i) => seen.map((it) => it[i]);
    const sets = [[1], [2, 3], [4], [5]];
    this.plots.forEach((plot, i) => plot.show([column(0), ...sets[i].map(column)]));
    this.plots[1].node.hidden = this.untold === true;
  }

  async tick(sessions) {
    if (last && Date.now() / 1000 - last.now < EVERY - 0.2) return;
    look(sessions, await this.samples());
    this.draw();
  }

  /* Not everybody may have them. */
  async samples() {
    if (this.untold) return [];
    try {
      return samplesOf(await api.metrics());
    } catch (error) {
      if (error.name !== "Refused") throw error;
      this.untold = error.status !== 429;
      return [];
    }
  }

  leave() {
    removeEventListener("lair-theme", this.themed);
    this.plots.forEach((it) => it.leave());
  }
}
