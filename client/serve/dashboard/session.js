/* The page of one session. */
import * as api from "./api.js";
import { Calls } from "./calls.js";
import { Changes } from "./changes.js";
import { Cells } from "./cells.js";
import { Files } from "./files.js";
import { blocked } from "./output.js";
import { age, ask, button, bytes, count, h, keep, mark, name, note, put, seconds, shown, told } from "./dom.js";
import { Prompt } from "./prompt.js";
import { Tree } from "./tree.js";
import { wordOf } from "./overview.js";

/* ---- variables ---- */

function variable() {
  const cells = [h("th", { scope: "row" }), h("td", {}), h("td", { class: "number" }), h("td", { class: "repr" })];
  return {
    node: h("tr", {}, cells),
    update(it) {
      put(cells[0], shown(it.name, 80));
      put(cells[1], shown(it.type, 60) + (it.shape?.length ? ` ${it.shape.join(" × ")}` : ""));
      put(cells[2], bytes(it.size));
      put(cells[3], shown(it.text, 160));
    },
  };
}

class Variables {
  constructor(page) {
    this.page = page;
    this.body = h("tbody", {});
    this.table = h("div", { class: "scroll" }, h("table", { class: "list variables" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), h("th", { scope: "col" }, "Type"), h("th", { scope: "col", class: "number" }, "Size"), h("th", { scope: "col" }, "Value"))), this.body));
    this.empty = h("p", { class: "empty" }, "No variables yet.");
    this.node = h("div", {}, this.table, this.empty);
  }

  async load() {
    const { variables, total } = await api.vars(this.page.id).catch((error) => {
      if (error.code === "busy") return { variables: null };
      throw error;
    });
    if (!variables) {
      put(this.empty, "They are listed when the cell has ended.");
      this.empty.hidden = this.body.childElementCount > 0;
      return;
    }
    keep(this.body, variables, (it) => it.name, variable);
    this.table.hidden = variables.length === 0;
    this.empty.hidden = variables.length > 0 && variables.length === (total ?? variables.length);
    put(this.empty, variables.length ? `and ${total - variables.length} more` : "No variables yet.");
  }
}

/* ---- what was blocked ---- */

class Blocked {
  constructor(page) {
    this.page = page;
    this.node = h("div", {});
  }

  async load() {
    const cells = this.page.cells.all.filter((it) => it.result?.blocked?.length);
    const seen = cells.map((it) => `${it.number}:${it.result.blocked.length}`).join();
    if (seen === this.seen && this.node.firstChild) return;
    this.seen = seen;
    if (!cells.length) this.node.replaceChildren(h("p", { class: "empty" }, "The cage has refused nothing to the cells on this page."));
    else this.node.replaceChildren(...cells.map((it) => h("section", {}, h("h3", {}, `Cell ${it.number}`), blocked(it.result.blocked))));
  }
}

/* ---- the page ---- */

const FACTS = [
  ["Profile", (it) => shown(it.profile)],
  ["Age", (it) => age(Date.now() / 1000 - it.created)],
  ["Cells", (it) => String(it.cells)],
  ["Memory", (it) => bytes(it.memory) + (it.memory_limit ? ` of ${bytes(it.memory_limit)}` : "")],
  ["CPU time", (it) => seconds(it.cpu)],
  ["Files", (it) => `${it.files} · ${bytes(it.disk)}`],
  ["Ends", (it) => {
    const left = Math.min(it.idle_left ?? Infinity, it.hard_left ?? Infinity);
    return left === Infinity ? "never" : `in ${age(left)}`;
  }],
];

export class SessionPage {
  constructor(id, app) {
    this.id = id;
    this.app = app;
    this.cells = new Cells(id, { onEnd: () => this.refresh().catch(() => null), onFile: told((path) => this.files.download(path)) });
    this.prompt = new Prompt(id, (code) => this.cells.run(code));
    this.tree = new Tree(this);
    this.files = new Files(this);
    this.changes = new Changes(this);
    this.calls = new Calls(() => this.app.poll(), false);
    this.panels = [
      ["Checkpoints", this.tree, () => this.loadTree()],
      ["Variables", new Variables(this), null],
      ["Files", this.files, null],
      ["Changes", this.changes, null],
      ["Blocked", new Blocked(this), null],
    ].map(([label, view, load]) => ({ label, view, load: load ?? (() => view.load()) }));
    this.build();
    this.choose(0);
  }

  build() {
    this.state = h("span", { class: "pill" });
    this.values = FACTS.map(() => h("dd", {}));
    this.stop = button("Interrupt", told(() => api.interrupt(this.id)), { class: "danger", hidden: true });
    this.trouble = h("p", { class: "told bad", role: "alert", hidden: true });
    this.tabs = this.panels.map((it, i) => h("button", { type: "button", role: "tab", id: `tab-${i}`, "aria-controls": `panel-${i}`, onclick: () => this.choose(i), onkeydown: (event) => this.tabKey(event, i) }, it.label));
    this.bodies = this.panels.map((it, i) => h("div", { role: "tabpanel", id: `panel-${i}`, "aria-labelledby": `tab-${i}`, class: "panel", hidden: true }, it.view.node));
    const head = h("header", { class: "head" },
      h("div", { class: "title" }, h("h1", {}, name(this.id)), this.state),
      h("dl", { class: "facts" }, FACTS.map(([label], i) => h("div", {}, h("dt", {}, label), this.values[i]))),
      h("div", { class: "row actions" }, button("Save", told(() => this.save())), button("Reset…", told(() => this.reset())), button("Shut down…", told(() => this.shutdown()))),
      this.trouble);
    this.prompt.tools.prepend(this.stop);
    this.node = h("div", { class: "columns" },
      h("div", { class: "side" }, head,
        h("aside", { "aria-label": "About the session" }, h("div", { role: "tablist", class: "tabs", "aria-label": "About the session" }, this.tabs), this.bodies)),
      h("section", { class: "main-column", "aria-label": "Cells" }, this.cells.node, this.calls.node, this.prompt.node));
  }

  tabKey(event, i) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (i + step + this.tabs.length) % this.tabs.length;
    this.choose(next);
    this.tabs[next].focus();
  }

  choose(index) {
    this.chosen = index;
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
      this.bodies[i].hidden = i !== index;
    });
    if (this.loaded) told(() => this.panels[index].load())();
  }

  async compare(since) {
    this.changes.wanted = since;
    this.choose(this.panels.findIndex((it) => it.view === this.changes));
    this.tabs[this.chosen].focus();
  }

  /* ---- what the server says ---- */

  async loadTree() {
    this.tree.update(await api.checkpoints(this.id), this.past ?? []);
  }

  show(it) {
    put(this.state, wordOf(it));
    mark(this.state, "data-state", it.state);
    FACTS.forEach(([, say], i) => put(this.values[i], say(it)));
    this.stop.hidden = it.state !== "busy" && it.state !== "grace";
  }

  /* Each second. The lists are fetched again only if something has run or gone back. */
  async tick(calls) {
    this.calls.update(calls.filter((it) => it.session === this.id));
    let it;
    try {
      it = await api.info(this.id);
    } catch (error) {
      if (error.name !== "Refused") throw error;
      this.gone(error);
      return;
    }
    this.trouble.hidden = true;
    this.show(it);
    if (this.birth && this.birth !== it.birth) this.cells.clear();
    this.birth = it.birth;
    const busy = it.state === "busy" || it.state === "grace";
    const seen = [it.birth, it.cells, it.state, it.queued, it.checkpoints].join();
    if (seen !== this.seen) await this.refresh(busy ? it.cells : 0);
    else if (this.panels[this.chosen].label === "Checkpoints") await this.loadTree();
    this.seen = seen;
  }

  async refresh(running) {
    const past = await api.history(this.id).catch((error) => (error.code === "no_session" ? [] : Promise.reject(error)));
    this.past = past;
    this.prompt.remember(past.map((it) => it.code));
    this.cells.update(past, running ?? 0);
    this.loaded = true;
    await this.panels[this.chosen].load().catch((error) => {
      if (error.code !== "no_session" && error.code !== "busy") throw error;
    });
  }

  gone(error) {
    const fresh = error.code === "no_session";
    put(this.state, fresh ? "not there" : "unknown");
    mark(this.state, "data-state", "none");
    put(this.trouble, fresh ? "There is no session of this name now. The next cell begins one." : error.message);
    this.trouble.hidden = false;
    this.stop.hidden = true;
  }

  wentBack(answer) {
    this.cells.told(answer);
    this.seen = null;
  }

  /* ---- what one does ---- */

  async save() {
    const answer = await api.save(this.id);
    note(`${count((answer.names ?? []).length, "variable is", "variables are")} saved${answer.refused?.length ? `, ${answer.refused.length} could not be` : ""}.`);
  }

  async reset() {
    if (!(await ask({ title: "Reset the session?", text: "It begins anew, without variables. Its files stay, and its checkpoints can still be restored.", yes: "Reset", danger: true }))) return;
    const answer = await api.reset(this.id);
    this.wentBack(answer);
    note("The session has begun anew.");
    await this.app.poll();
  }

  async shutdown() {
    if (!(await ask({ title: `Shut down ${shown(this.id)}?`, text: "Its variables, checkpoints and files are deleted.", yes: "Shut down", danger: true }))) return;
    await api.shutdown(this.id);
    note("The session has ended.");
    location.hash = "#/";
  }

  leave() {
    this.cells.leave();
  }
}
