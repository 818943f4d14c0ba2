/* What differs between two states of a session: files and variables. */
import * as api from "./api.js";
import { bytes, h, mark, name, put, shown, told } from "./dom.js";
import { handle, reachable, title } from "./tree.js";

/* The state before the last cell, and the present one: what the API takes if nothing is said. */
const BEFORE = ["", "Before the last cell"];
const NOW = ["", "Now"];

function options(select, first, states) {
  const all = [first, ...states.map((it) => [handle(it), title(it) + (it.name ? ` (${shown(it.name, 40)})` : "")])];
  const had = select.value;
  const seen = JSON.stringify(all);
  if (select.seen === seen) return;
  select.seen = seen;
  select.replaceChildren(...all.map(([value, label]) => h("option", { value }, label)));
  select.value = all.some(([value]) => value === had) ? had : "";
}

function changed(word) {
  const cell = h("td", {}, h("span", { class: "change" }, shown(word, 20)));
  mark(cell.firstChild, "data-change", word);
  return cell;
}

/* What it was, and what it is: one of them if the other is not there. */
function both(before, now) {
  return [before ? h("del", {}, before) : null, before && now ? " → " : null, now ? h("ins", {}, now) : null];
}

const FRESH = new Set(["created", "new"]);
const GONE = new Set(["deleted", "gone"]);

function file(it) {
  const mode = it.mode === undefined ? "" : ` mode ${it.mode_before.toString(8)} → ${it.mode.toString(8)}`;
  const [was, is] = [FRESH.has(it.change) ? "" : bytes(it.size_before), GONE.has(it.change) ? "" : bytes(it.size)];
  return h("tr", {}, changed(it.change), h("td", {}, it.was ? [name(it.was), " → "] : null, name(it.path), mode), h("td", { class: "number" }, was === is ? is : both(was, is)));
}

function variable(it) {
  const say = (type, text) => (type || text ? shown(text || type, 120) : "");
  const [was, is] = FRESH.has(it.change) ? ["", say(it.type, it.text)]
    : GONE.has(it.change) ? [say(it.type_before || it.type, it.text_before || it.text), ""]
    : [say(it.type_before, it.text_before), say(it.type, it.text)];
  return h("tr", {}, changed(it.change), h("td", {}, name(it.name)), h("td", { class: "repr" }, both(was, is)));
}

function table(label, last, rows) {
  return h("section", {}, h("h3", {}, label),
    h("div", { class: "scroll" }, h("table", { class: "list changes", "aria-label": label },
      h("thead", {}, h("tr", {}, ["Change", "Name", last].map((it, i) => h("th", { scope: "col", class: i === 2 && last === "Size" ? "number" : "" }, it)))),
      h("tbody", {}, rows))));
}

export class Changes {
  constructor(page) {
    this.page = page;
    this.wanted = undefined; /* since which state, of the next load: one that was chosen in the tree */
    this.since = h("select", { "aria-label": "Since", onchange: told(() => this.load()) });
    this.until = h("select", { "aria-label": "Until", onchange: told(() => this.load()) });
    this.caption = h("p", { class: "caption" });
    this.body = h("div", {});
    this.empty = h("p", { class: "empty" });
    this.node = h("div", {},
      h("div", { class: "row between-states" }, h("label", { class: "field" }, h("span", {}, "Since"), this.since), h("label", { class: "field" }, h("span", {}, "Until"), this.until)),
      this.body, this.caption, this.empty);
  }

  async load() {
    const states = await api.checkpoints(this.page.id);
    const known = states.filter((it, i) => reachable(states, i));
    options(this.since, BEFORE, known);
    options(this.until, NOW, known);
    if (this.wanted !== undefined) this.since.value = this.wanted;
    this.wanted = undefined;
    try {
      this.show(await api.diff(this.page.id, this.since.value, this.until.value));
    } catch (error) {
      if (error.name !== "Refused") throw error;
      this.body.replaceChildren();
      put(this.caption, "");
      put(this.empty, error.code === "busy" ? "They are compared when the cell has ended." : shown(error.message));
      this.empty.hidden = false;
    }
  }

  show(it) {
    const seen = JSON.stringify(it);
    if (seen === this.seen && this.body.firstChild) return;
    this.seen = seen;
    const tables = [];
    if (it.variables.length) tables.push(table("Variables", "Value", it.variables.map(variable)));
    if (it.files.length) tables.push(table("Files", "Size", it.files.map(file)));
    this.body.replaceChildren(...tables);
    const more = [it.variables_more ? `${it.variables_more} more variables differ.` : "", it.files_more ? `${it.files_more} more files differ.` : "",
                  it.variables_lack ? `Variables are not compared: ${shown(it.variables_lack)}.` : "", it.files_lack ? `Files are not compared: ${shown(it.files_lack)}.` : "",
                  it.unsure?.length ? `Not known whether they differ: ${it.unsure.map((each) => shown(each, 40)).join(", ")}.` : ""];
    put(this.caption, more.filter(Boolean).join(" "));
    put(this.empty, "Nothing differs between these two states.");
    this.empty.hidden = tables.length > 0;
  }
}
