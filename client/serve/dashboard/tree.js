/* The tree of checkpoints: a line for each state, oldest first, with a picture of what grew from what. */
import * as api from "./api.js";
import { ago, ask, button, bytes, h, note, shown, svg, told } from "./dom.js";

const HIGH = 38;
const LANE = 18;
const LEFT = 14;

/* ---- where each state stands ---- */

/* States in order, with the beginning first: {cell, name, parent (an index), lane, base, past, …} */
export function laidOut(checkpoints, lastCell) {
  const states = [{ cell: 0, parent: -1, root: true, name: null }];
  for (const it of checkpoints) states.push({ ...it, parent: it.parent ?? 0 });
  const base = Math.max(0, states.findIndex((it) => it.base));
  if (lastCell > states[base].cell) states.push({ cell: lastCell, parent: base, unsaved: true, name: null });
  const now = states[states.length - 1].unsaved ? states.length - 1 : base;
  states[now].now = true;
  for (let at = now; at >= 0; at = states[at].parent) states[at].past = true;
  lanes(states);
  return states;
}

/* The way to the present goes straight down; else the first that grew from a state goes on in its lane. Another takes
 * the first lane in which nothing is, from the state it grew from on. */
function lanes(states) {
  const heirs = new Map();
  states.forEach((it, i) => {
    if (it.past || !heirs.has(it.parent)) heirs.set(it.parent, i);
  });
  const until = [];
  states.forEach((it, i) => {
    if (it.root || heirs.get(it.parent) === i) it.lane = it.root ? 0 : states[it.parent].lane;
    else {
      it.lane = until.findIndex((end) => end <= it.parent);
      if (it.lane < 0) it.lane = until.length;
    }
    until[it.lane] = Math.max(until[it.lane] ?? 0, i, heirs.get(i) ?? 0);
  });
}

const x = (it) => LEFT + it.lane * LANE;
const y = (i) => i * HIGH + HIGH / 2;

function edge(states, i) {
  const it = states[i];
  const from = states[it.parent];
  const [x0, y0, x1, y1] = [x(from), y(it.parent), x(it), y(i)];
  const bend = Math.min(HIGH, y1 - y0);
  const d = x0 === x1 ? `M${x0} ${y0}V${y1}` : `M${x0} ${y0}C${x0} ${y0 + bend * 0.7} ${x1} ${y0 + bend * 0.3} ${x1} ${y0 + bend}V${y1}`;
  return svg("path", { d, class: `edge${it.past ? " past" : ""}${it.gap ? " gap" : ""}` });
}

function dot(it, i) {
  const kind = `dot${it.past ? " past" : ""}${it.now ? " now" : ""}${it.unsaved ? " unsaved" : ""}`;
  return [
    it.now ? svg("circle", { cx: x(it), cy: y(i), r: 9, class: "halo" }) : null,
    it.name ? svg("rect", { x: x(it) - 5, y: y(i) - 5, width: 10, height: 10, rx: 2, class: kind, transform: `rotate(45 ${x(it)} ${y(i)})` })
            : svg("circle", { cx: x(it), cy: y(i), r: 5, class: kind }),
  ];
}

function drawn(states) {
  const wide = LEFT * 2 + Math.max(...states.map((it) => it.lane)) * LANE;
  const high = states.length * HIGH;
  return svg("svg", { class: "graph", viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, "aria-hidden": "true" },
    states.map((it, i) => (it.parent >= 0 ? edge(states, i) : null)), states.map(dot));
}

/* ---- what one does there ---- */

export function title(it) {
  if (it.root) return "The beginning";
  return `After cell ${it.cell}`;
}

/* The name by which the API knows it. */
export const handle = (it) => it.name ?? String(it.cell);

function stepsBack(states) {
  const steps = new Map();
  let n = 0;
  for (let at = states.findIndex((it) => it.now); at >= 0; at = states[at].parent) {
    steps.set(at, n++);
    if (states[at].gap) break;
  }
  return steps;
}

/* The newest of a cell is what its number means, and a name may be a number. */
export function reachable(states, i) {
  const it = states[i];
  if (it.name) return true;
  if (states.some((other) => other.name === String(it.cell))) return false;
  return states.findLastIndex((other) => other.cell === it.cell && !other.unsaved && !other.root) === i;
}

export class Tree {
  constructor(page) {
    this.page = page;
    this.chosen = null;
    this.keepFiles = h("input", { type: "checkbox" });
    this.picture = h("div", { class: "tree" });
    this.undoOne = button("Undo the last cell", told(() => this.undo(1)), { class: "primary" });
    this.node = h("div", {},
      h("div", { class: "row" }, this.undoOne, button("Keep this state…", told(() => this.keep())),
        button("Branch…", told(() => this.branch(null)))),
      h("label", { class: "check" }, this.keepFiles, "Leave the files as they are when going back"),
      this.picture);
  }

  update(checkpoints, cells) {
    const lived = cells.filter((it) => !it.undone);
    const states = laidOut(checkpoints, lived.length ? lived[lived.length - 1].cell : 0);
    const codes = new Map(cells.map((it) => [it.cell, it.code]));
    this.undoOne.disabled = states.find((it) => it.now).root === true;
    const seen = JSON.stringify([states.map(({ age, memory, ...it }) => it), this.chosen]);
    if (seen !== this.seen) this.draw(states, codes);
    this.seen = seen;
    states.forEach((it, i) => {
      const age = this.ages[i];
      const words = it.unsaved ? "not kept" : it.root ? "" : ago(it.age);
      if (age && age.textContent !== words) age.textContent = words;
    });
  }

  draw(states, codes) {
    const focused = this.picture.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const steps = stepsBack(states);
    this.ages = [];
    const rows = states.map((it, i) => this.row(states, it, i, steps, codes));
    this.picture.replaceChildren(h("div", { class: "tree-picture" }, drawn(states)), h("ol", { class: "tree-rows" }, rows));
    const chosen = states.findIndex((it) => keyOf(it) === this.chosen);
    if (chosen >= 0) this.picture.append(this.actions(states, chosen, steps));
    if (focused) this.picture.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  row(states, it, i, steps, codes) {
    const key = keyOf(it);
    const code = it.root ? "" : shown((codes.get(it.cell) ?? "").trim().split("\n")[0], 60);
    const age = h("span", { class: "age" });
    this.ages.push(age);
    return h("li", {}, button([
      h("span", { class: "state-name" }, title(it), it.name ? h("bdi", { class: "tag" }, shown(it.name)) : null,
        it.now ? h("span", { class: "tag here" }, "now") : null),
      h("code", {}, code),
      age,
    ], () => {
      this.chosen = this.chosen === key ? null : key;
      told(async () => {
        await this.page.refresh();
        this.picture.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
      })();
    }, { class: "state", "data-key": key, "aria-expanded": String(this.chosen === key), "aria-current": it.now ? "true" : null }));
  }

  actions(states, i, steps) {
    const it = states[i];
    const n = steps.get(i);
    const can = !it.unsaved && !it.root && reachable(states, i);
    const parts = [];
    if (!it.now && (can || (it.root && n !== undefined)))
      parts.push(button("Go back to this state", told(() => (can ? this.restore(it) : this.undo(n))), { class: "primary" }));
    if (can) parts.push(button("Branch from here…", told(() => this.branch(it))));
    if (can && !it.now) parts.push(button("What has changed since", told(() => this.page.compare(handle(it)))));
    if (can && !it.now) parts.push(button("Forget…", told(() => this.drop(it))));
    const facts = it.root ? "Before the first cell."
      : it.unsaved ? "This state is the session's alone: no checkpoint has it."
      : `It holds ${bytes(it.memory)} alone${it.files ? `, and has ${it.files} files` : ""}${it.files_lack ? ", not all of which are kept" : ""}.${it.gap ? " A state before it has been forgotten." : ""}`;
    return h("div", { class: "chosen", role: "group", "aria-label": title(it) }, h("h3", {}, title(it)), h("p", {}, facts), h("div", { class: "row" }, parts));
  }

  /* ---- */

  async did(answer, words) {
    this.chosen = null;
    note(words);
    this.page.wentBack(answer);
    await this.page.refresh();
  }

  async undo(n) {
    const answer = await api.undo(this.page.id, n, this.keepFiles.checked);
    await this.did(answer, answer.cell ? `The session is in the state after cell ${answer.cell} again.` : "The session is at its beginning again.");
  }

  async restore(it) {
    const answer = await api.restore(this.page.id, handle(it), this.keepFiles.checked);
    await this.did(answer, `The session is in the state after cell ${answer.cell} again.`);
  }

  async keep() {
    const given = await ask({ title: "Keep this state", text: "A checkpoint with a name is kept until it is forgotten.",
                              fields: [{ label: "Name", name: "name", required: true, maxlength: "64", pattern: "[!-~]+", title: "Printable ASCII without spaces" }], yes: "Keep" });
    if (!given) return;
    await api.checkpoint(this.page.id, given.name);
    await this.did(null, `This state is kept as ${given.name}.`);
  }

  async branch(it) {
    const given = await ask({ title: it ? `Branch from the state ${title(it).toLowerCase()}` : "Branch from the present state",
                              text: "A second session goes on from there. This one does not change.",
                              fields: [{ label: "Name of the new session", name: "branch", required: true, maxlength: "64" },
                                       { label: "With its own copy of the files", name: "files", type: "checkbox" }], yes: "Branch" });
    if (!given) return;
    await api.branch(this.page.id, given.branch, it ? handle(it) : null, given.files);
    location.hash = `#/s/${encodeURIComponent(given.branch)}`;
  }

  async drop(it) {
    const sure = await ask({ title: `Forget the state ${title(it).toLowerCase()}?`, text: "Nobody can go back to it then.", yes: "Forget", danger: true });
    if (!sure) return;
    await api.drop(this.page.id, handle(it));
    await this.did(null, `The state after cell ${it.cell} is forgotten.`);
  }
}

function keyOf(it) {
  return it.root ? "root" : it.unsaved ? "unsaved" : `${it.cell} ${it.name ?? ""} ${it.parent}`;
}
