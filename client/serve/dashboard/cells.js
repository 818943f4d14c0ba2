/* The cells of a session, each with its output as it comes. */
import * as api from "./api.js";
import { bundle, ending, notes, text } from "./output.js";
import { button, count, h, name, put, seconds, told } from "./dom.js";

const SHOWN = 40;
/* A cell may print without end: what was first goes then. */
const PIECE = 100_000;
const PIECES_MAX = 20;
const DISPLAYS_MAX = 300;
const GATHERED_MS = 60;

function newKey() {
  return `dashboard-${[...crypto.getRandomValues(new Uint32Array(4))].map((it) => it.toString(36)).join("")}`;
}

/* A cell on the page. It gets its output by a stream: from the exec that began it here, or by its number. */
class Cell {
  constructor(cells, code, number) {
    this.cells = cells;
    this.number = number;
    this.displays = new Map();
    this.gathered = [];
    this.timer = null;
    this.outputs = h("div", { class: "outputs" });
    this.question = h("div", {});
    this.gutter = h("span", { class: "gutter" });
    this.status = h("span", { class: "status" });
    this.took = h("span", { class: "took" });
    this.code = h("pre", { class: "code", tabindex: "0", "aria-label": "Code" }, code);
    this.node = h("article", { class: "cell", "aria-label": number ? `Cell ${number}` : "New cell" },
      this.gutter, h("div", { class: "cell-body" }, h("div", { class: "cell-head" }, this.code, h("div", { class: "cell-facts" }, this.status, this.took)), this.outputs, this.question));
    this.say();
  }

  say() {
    const past = this.past;
    put(this.gutter, this.number ? String(this.number) : "•");
    const state = this.failed ? "lost" : !this.result && !past ? "running" : this.result?.state === "rolled_back" || this.result?.state === "reset" ? "went back"
      : past?.undone ? "undone" : (this.result ?? past).returncode ? "failed" : "";
    this.node.className = `cell ${state.replace(" ", "-")}`;
    put(this.status, state === "failed" || state === "lost" ? "" : state === "running" && this.waits ? "waits" : state);
    const took = this.result ?? past;
    put(this.took, took?.duration_ms !== undefined ? seconds(took.duration_ms / 1000) : this.alive ? seconds(this.alive.elapsed) : "");
  }

  /* ---- events ---- */

  on(type, data) {
    this.waits = false;
    if (type === "stdout" || type === "stderr") {
      this.gather(type, data.text);
      return;
    }
    this.flush();
    if (type === "display") this.display(data);
    else if (type === "alive") this.alive = data;
    else if (type === "ask") this.asks(data);
    else if (type === "left_out") this.add(h("p", { class: "told warn" }, "Some output came faster than it could be sent here."));
    else if (type === "result") this.ended(data);
    else if (type === "error") this.lost(data.detail ?? data.title ?? "The result is lost.");
    this.say();
  }

  /* Many small pieces become few large ones. */
  gather(kind, piece) {
    const last = this.gathered.at(-1);
    if (last?.kind === kind) last.pieces.push(piece);
    else this.gathered.push({ kind, pieces: [piece] });
    this.timer ??= setTimeout(() => this.flush(), GATHERED_MS);
  }

  flush() {
    clearTimeout(this.timer);
    this.timer = null;
    for (const { kind, pieces } of this.gathered.splice(0)) this.write(kind, pieces.join(""));
    this.say();
  }

  write(kind, piece) {
    if (!piece) return;
    const last = this.outputs.lastElementChild;
    if (last?.raw !== undefined && last.kind === kind && last.raw.length < PIECE) {
      last.raw += piece;
      const next = this.piece(kind, last.raw);
      last.replaceWith(next);
    } else this.add(this.piece(kind, piece));
    const pieces = [...this.outputs.children].filter((it) => it.raw !== undefined);
    for (const old of pieces.slice(0, Math.max(0, pieces.length - PIECES_MAX))) old.remove();
    if (pieces.length > PIECES_MAX && !this.cut) {
      this.cut = h("p", { class: "told warn" }, "The beginning of its output is not shown any more.");
      this.outputs.prepend(this.cut);
    }
  }

  piece(kind, raw) {
    const node = text(raw, kind);
    node.raw = raw;
    node.kind = kind;
    return node;
  }

  add(node) {
    if (this.outputs.childElementCount < DISPLAYS_MAX) this.outputs.append(node);
    return node;
  }

  display(data) {
    if (data.clear) {
      this.outputs.replaceChildren();
      this.displays.clear();
    }
    if (!data.data || !Object.keys(data.data).length) return;
    const node = bundle(data.data);
    const had = data.display_id ? this.displays.get(data.display_id) : null;
    if (had) had.replaceWith(node);
    else if (data.update) return;
    else this.add(node);
    if (data.display_id) this.displays.set(data.display_id, node);
  }

  asks(data) {
    const field = h("input", { type: data.password ? "password" : "text", autocomplete: "off", "aria-label": data.prompt || "What the cell asks for" });
    const form = h("form", { class: "ask row", onsubmit: told(async (event) => {
      event.preventDefault();
      const line = field.value;
      form.remove();
      this.write("stdout", `${data.prompt}${data.password ? "" : line}\n`);
      await api.input(this.cells.id, line);
    }) }, h("label", {}, h("span", {}, name(data.prompt || "The cell asks:")), field), h("button", { type: "submit", class: "primary" }, "Answer"));
    this.question.replaceChildren(form);
    field.focus();
  }

  ended(result) {
    this.result = result;
    this.number = result.cell || this.number;
    this.question.replaceChildren();
    const trace = result.error?.traceback;
    let stderr = result.stderr ?? "";
    if (trace && stderr.endsWith(trace)) stderr = stderr.slice(0, -trace.length);
    const last = [...this.outputs.children].findLast((it) => it.kind === "stderr");
    if (trace && last?.raw.endsWith(trace)) {
      const rest = last.raw.slice(0, -trace.length);
      if (rest) last.replaceWith(this.piece("stderr", rest));
      else last.remove();
    }
    this.write("stdout", result.stdout);
    this.write("stderr", stderr);
    for (const one of result.displays ?? []) this.display(one);
    for (const node of ending(result, this.cells.onFile).flat()) if (node) this.outputs.append(node);
  }

  lost(why) {
    this.failed = true;
    this.outputs.append(h("p", { class: "told bad" }, why));
  }

  unkept() {
    this.kept = false;
    this.result = null;
    this.add(h("p", { class: "told" }, "Its output is not kept any more."));
  }

  async follow(begin) {
    try {
      await begin((type, data) => this.on(type, data));
      this.flush();
      if (!this.result && !this.failed) this.lost("The server ended the stream before the cell.");
    } catch (error) {
      if (error.name === "AbortError") return;
      if (this.past && (error.code === "gone" || error.status === 404 || error.status === 410)) this.unkept();
      else this.lost(error.message);
    }
    this.say();
    this.cells.onEnd(this);
  }
}

export class Cells {
  constructor(id, { onEnd, onFile }) {
    this.id = id;
    this.all = [];
    this.shown = SHOWN;
    this.leaving = new AbortController();
    this.onFile = onFile;
    this.onEnd = onEnd;
    this.older = button("Show older cells", () => {
      this.shown += SHOWN;
      this.update(this.history, this.birth);
    }, { class: "small", hidden: true });
    this.list = h("div", { class: "cells" });
    this.empty = h("p", { class: "empty" }, "Nothing has run here yet. Write some Python below.");
    this.node = h("div", {}, this.older, this.empty, this.list);
    this.following = true;
    this.grows = new ResizeObserver(() => this.following && this.toBottom());
    this.grows.observe(this.list);
    this.scrolled = () => {
      this.following = this.atBottom();
    };
    addEventListener("wheel", this.scrolled, { passive: true });
    addEventListener("keyup", this.scrolled);
    addEventListener("pointerup", this.scrolled);
    addEventListener("touchend", this.scrolled);
  }

  /* What the session remembers of its cells, and the one that runs. */
  update(history, running) {
    this.history = history;
    const first = Math.max(0, history.length - this.shown);
    this.older.hidden = first === 0;
    put(this.older, `Show ${count(first, "older cell")}`);
    for (const past of history.slice(first)) this.learn(past);
    if (running && !this.find(running) && !this.all.some((it) => !it.result && !it.failed && !it.past)) this.watch(this.insert(new Cell(this, "", running)));
    this.empty.hidden = this.all.length > 0;
  }

  find(number) {
    return this.all.find((it) => it.number === number);
  }

  learn(past) {
    let cell = this.find(past.cell) ?? this.all.find((it) => !it.number && !it.result && it.code.textContent === past.code);
    if (cell) cell.number = past.cell;
    else {
      cell = this.insert(new Cell(this, past.code, past.cell));
      cell.past = past;
      this.watch(cell);
    }
    cell.past = past;
    put(cell.code, past.code);
    cell.say();
  }

  insert(cell) {
    const at = this.all.findIndex((it) => cell.number && it.number && it.number > cell.number);
    if (at < 0) {
      this.all.push(cell);
      this.list.append(cell.node);
    } else {
      this.list.insertBefore(cell.node, this.all[at].node);
      this.all.splice(at, 0, cell);
    }
    return cell;
  }

  watch(cell) {
    cell.follow((on) => api.watch(this.id, cell.number, this.leaving.signal, on));
  }

  run(code) {
    const cell = this.insert(new Cell(this, code, null));
    this.empty.hidden = true;
    this.following = true;
    this.toBottom();
    this.begin(cell, code, newKey());
  }

  /* A browser has six connections to a server, and each stream takes one. So what waits behind another cell is sent at
   * once, but followed only when it is its turn. */
  begin(cell, code, key) {
    const { signal } = this.leaving;
    const earlier = this.turn;
    const sent = earlier && api.detach(this.id, code, key);
    cell.waits = Boolean(earlier);
    cell.say();
    const turn = cell.follow(earlier
      ? async (on) => {
        const told = await sent;
        await earlier;
        await api.watchKey(this.id, told.key, signal, on);
      }
      : (on) => api.exec(this.id, code, key, signal, on)).then(() => {
      if (this.turn === turn) this.turn = null;
    });
    this.turn = turn;
  }

  /* What a restore or an undo has told. */
  told(answer) {
    this.list.append(...notes(answer));
  }

  atBottom() {
    return innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  }

  toBottom() {
    scrollTo(0, document.documentElement.scrollHeight);
  }

  /* Another session has that name now. */
  clear() {
    for (const it of this.all.filter((it) => it.result || it.past)) it.node.remove();
    this.all = this.all.filter((it) => !it.result && !it.past);
  }

  leave() {
    this.grows.disconnect();
    for (const type of ["wheel", "keyup", "pointerup", "touchend"]) removeEventListener(type, this.scrolled);
    this.leaving.abort();
  }
}
