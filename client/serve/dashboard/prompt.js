/* The prompt: several lines, completion, the cells from before. */
import * as api from "./api.js";
import { button, h, shown } from "./dom.js";

const COMPLETIONS_SHOWN = 50;
const characters = (text) => [...text].length;

/* The place in @code after so many characters, which JavaScript counts otherwise. */
const place = (code, n) => [...code].slice(0, n).join("").length;

export class Prompt {
  constructor(id, run) {
    this.id = id;
    this.run = run;
    this.past = [];
    this.at = null;
    this.matches = [];
    this.field = h("textarea", {
      rows: "1", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-label": "Code of the next cell", placeholder: "Python for the next cell",
      role: "combobox", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": "completions", "aria-describedby": "prompt-hint",
      oninput: () => this.changed(), onkeydown: (event) => this.key(event), onblur: () => setTimeout(() => this.close(), 150),
    });
    this.list = h("ul", { id: "completions", role: "listbox", "aria-label": "Completions", hidden: true });
    this.button = button("Run", () => this.submit(), { class: "primary" });
    this.tools = h("div", { class: "row" }, this.button);
    this.node = h("form", { class: "prompt", onsubmit: (event) => event.preventDefault() },
      h("div", { class: "prompt-field" }, this.field, this.list),
      h("div", { class: "row between" },
        h("small", { id: "prompt-hint" }, h("kbd", {}, "Shift"), "+", h("kbd", {}, "Enter"), " runs, ", h("kbd", {}, "Tab"), " completes, ", h("kbd", {}, "Esc"), " then ", h("kbd", {}, "Tab"), " leaves"),
        this.tools));
  }

  remember(codes) {
    this.past = codes;
  }

  focus() {
    this.field.focus();
  }

  set(code) {
    this.field.value = code;
    this.fit();
    this.field.setSelectionRange(code.length, code.length);
  }

  fit() {
    const lines = this.field.value.split("\n").length;
    this.field.rows = Math.min(Math.max(lines, 1), 20);
  }

  changed() {
    this.fit();
    this.at = null;
    this.close();
  }

  submit() {
    const code = this.field.value;
    if (!code.trim()) return;
    this.close();
    this.set("");
    this.at = null;
    this.run(code);
  }

  /* ---- keys ---- */

  key(event) {
    if (event.isComposing) return;
    if (!this.list.hidden && this.listKey(event)) {
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) this.submit();
    else if (event.key === "Enter") this.newline();
    else if (event.key === "Tab" && !event.shiftKey && !this.leaving) this.complete();
    else if (event.key === "ArrowUp" && !this.before().includes("\n")) this.older(1);
    else if (event.key === "ArrowDown" && !this.after().includes("\n")) this.older(-1);
    else {
      this.leaving = event.key === "Escape";
      return;
    }
    this.leaving = false;
    event.preventDefault();
  }

  listKey(event) {
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") this.choose((this.index + (key === "ArrowDown" ? 1 : this.matches.length - 1)) % this.matches.length);
    else if ((key === "Enter" && !event.shiftKey) || key === "Tab") this.take(this.matches[this.index]);
    else if (key === "Escape") this.close();
    else return false;
    return true;
  }

  before() {
    return this.field.value.slice(0, this.field.selectionStart);
  }

  after() {
    return this.field.value.slice(this.field.selectionEnd);
  }

  insert(text, from = this.field.selectionStart, to = this.field.selectionEnd) {
    this.field.setRangeText(text, from, to, "end");
    this.changed();
  }

  newline() {
    const line = this.before().split("\n").pop();
    const indent = line.match(/^\s*/)[0] + (/:\s*(#.*)?$/.test(line) ? "    " : "");
    this.insert(`\n${indent}`);
  }

  older(step) {
    if (this.at === null) {
      if (step < 0 || !this.past.length) return;
      this.draft = this.field.value;
      this.at = this.past.length;
    }
    const at = this.at - step;
    if (at < 0) return;
    this.set(at >= this.past.length ? this.draft : this.past[at]);
    this.at = at >= this.past.length ? null : at;
  }

  /* ---- completion ---- */

  async complete() {
    const before = this.before();
    if (!/[\w.'"/\])]$/.test(before.split("\n").pop())) {
      this.insert("    ");
      return;
    }
    const code = this.field.value;
    const answer = await api.complete(this.id, code, characters(before)).catch((error) => ({ matches: [], why: error.message }));
    if (this.field.value !== code || this.before() !== before) return;
    this.matches = answer.matches.slice(0, COMPLETIONS_SHOWN);
    this.from = place(code, answer.start ?? 0);
    this.to = place(code, answer.end ?? 0);
    if (this.matches.length === 1) this.take(this.matches[0]);
    else if (this.matches.length) this.show();
    else this.say(answer.why ?? "No completions.");
  }

  show() {
    this.list.replaceChildren(...this.matches.map((it, i) =>
      h("li", { role: "option", id: `completion-${i}`, onmousedown: (event) => { event.preventDefault(); this.take(it); } },
        h("code", {}, shown(it.text, 80)), h("small", {}, shown(it.type ?? "", 20)))));
    this.list.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    this.choose(0);
  }

  say(words) {
    this.matches = [];
    this.list.replaceChildren(h("li", { class: "nothing" }, shown(words)));
    this.list.hidden = false;
    setTimeout(() => this.matches.length || this.close(), 2500);
  }

  choose(index) {
    if (!this.matches.length) return;
    this.index = index;
    [...this.list.children].forEach((it, i) => it.setAttribute("aria-selected", String(i === index)));
    this.list.children[index].scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", `completion-${index}`);
  }

  take(match) {
    if (match) this.insert(match.text, this.from, this.to);
    this.close();
  }

  close() {
    this.matches = [];
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }
}
