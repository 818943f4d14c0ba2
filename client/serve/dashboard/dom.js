/* Elements, and how the page says numbers. Text only ever becomes text here: nothing in this page parses HTML. */

import { UNSEEN } from "./unseen.js";

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "indeterminate"]);

function give(node, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (PROPERTIES.has(name)) node[name] = value;
  else node.setAttribute(name, value === true ? "" : value);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) give(node, name, value);
  node.append(...children.flat(4).filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

/* h("a", {href: "#/"}, "text", node, [more]) */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/* What has not changed is not touched: a selection stays, and nothing flickers. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function mark(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/* The children of @parent become those of @items, each made once: make(item) returns {node, update(item)}. */
export function keep(parent, items, keyOf, make) {
  const had = parent.kept ?? new Map();
  const now = new Map();
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const row = had.get(key) ?? make(item);
    now.set(key, row);
    if (row.node === at) at = at.nextElementSibling;
    else parent.insertBefore(row.node, at);
    row.update(item);
  }
  for (const [key, row] of had) if (!now.has(key)) row.node.remove();
  parent.kept = now;
  return now;
}

export function button(label, action, attributes) {
  return h("button", { type: "button", onclick: action, ...attributes }, label);
}

/* ---- text of strangers ---- */

/* Characters that change how others look, or that one does not see, as their numbers. The terminal has the same. */
export function shown(text, longest = 300) {
  const plain = String(text ?? "").replace(UNSEEN, (it) => "\\u" + it.codePointAt(0).toString(16).padStart(4, "0"));
  return plain.length > longest ? plain.slice(0, longest - 1) + "…" : plain;
}

/* A name of a stranger's, which no direction of writing leaves. */
export function name(text, attributes) {
  return h("bdi", { class: "name", ...attributes }, shown(text));
}

/* Output as a terminal would show it, without its colours. */
export function plain(text) {
  return text
    .replace(/\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g, "")
    .replace(/\r\n/g, "\n")
    .replace(/[^\n]*\r(?=[^\n])/g, "")
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g, "�");
}

/* ---- numbers ---- */

const UNITS = ["B", "KB", "MB", "GB", "TB"];

export function bytes(count) {
  let unit = 0;
  let value = Number(count) || 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 s";
  if (value < 0.0995) return `${value < 0.00995 ? (value * 1000).toFixed(1) : Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 59.5) return `${Math.round(value)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  if (value < 129600) return `${Math.round(value / 3600)} h`;
  return `${Math.round(value / 86400)} days`;
}

/* How long something has been so: in whole seconds, so that a list does not flutter. */
export function age(value) {
  const whole = Math.max(0, Math.floor(value));
  return whole < 60 ? `${whole} s` : seconds(whole);
}

export function ago(value) {
  return value < 2 ? "just now" : `${age(value)} ago`;
}

export function count(value, one, many = one + "s") {
  return `${Number(value).toLocaleString("en")} ${value === 1 ? one : many}`;
}

/* ---- words from above ---- */

/* A line at the edge of the page. What went wrong stays until it is put away. */
export function note(text, bad = false) {
  const notes = document.getElementById("notes");
  const line = h("div", { class: bad ? "note bad" : "note" }, h("span", {}, shown(text, 600)));
  line.append(button("×", () => line.remove(), { class: "quiet", "aria-label": "Put this message away" }));
  for (const it of [...notes.children]) if (!it.classList.contains("bad")) it.remove();
  while (notes.children.length > 3) notes.firstElementChild.remove();
  notes.append(line);
  if (!bad) setTimeout(() => line.remove(), 6000);
}

/* Run @action for a button: what it throws is told. */
export function told(action) {
  return async (...rest) => {
    try {
      return await action(...rest);
    } catch (error) {
      if (error.name !== "AbortError") note(error.message, true);
      return undefined;
    }
  };
}

/* A question in a dialog: @fields are {label, name, value, type, required, hint}. Resolves to their values, or null. */
export function ask({ title, text, fields = [], yes, danger = false }) {
  return new Promise((resolve) => {
    const inputs = fields.map((field) => {
      const { label, hint, ...attributes } = field;
      const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
      const words = h("span", {}, label);
      const box = field.type === "checkbox";
      return { field, input, node: h("label", { class: box ? "check" : "field" }, box ? [input, words] : [words, input],
                                     hint && h("small", {}, hint)) };
    });
    const dialog = h("dialog", { "aria-labelledby": "ask-title" },
      h("form", { method: "dialog" },
        h("h2", { id: "ask-title" }, title),
        text && h("p", {}, text),
        inputs.map((it) => it.node),
        h("div", { class: "row end" },
          button("Cancel", () => dialog.close("")),
          h("button", { type: "submit", value: "yes", class: danger ? "danger" : "primary" }, yes))));
    dialog.addEventListener("close", () => {
      const values = {};
      for (const { field, input } of inputs) values[field.name] = field.type === "checkbox" ? input.checked : input.value;
      resolve(dialog.returnValue === "yes" ? values : null);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
    (inputs[0]?.input ?? dialog.querySelector("[type=submit]")).focus();
  });
}
