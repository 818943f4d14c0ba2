/* What a cell gives back. All of it is a stranger's: text stays text, pictures are images, HTML lies in a frame
 * without an origin. */
import { button, bytes, h, name, plain, shown, svg } from "./dom.js";

const TEXT_SHOWN = 60_000;
const ROWS_SHOWN = 12;
const FRAME_HIGHEST = 640;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];

/* ---- text ---- */

export function text(content, kind) {
  const all = plain(content);
  const node = h("pre", { class: `out ${kind}`, tabindex: "0", "aria-label": kind === "stderr" ? "Errors and warnings" : "Output" });
  if (all.length <= TEXT_SHOWN) {
    node.append(all);
    return node;
  }
  node.append(all.slice(0, TEXT_SHOWN));
  const box = h("div", {}, node);
  const more = button(`Show all ${bytes(all.length)}`, () => {
    node.textContent = all;
    more.remove();
  }, { class: "small" });
  box.append(more);
  return box;
}

/* ---- tables ---- */

/* The JSON of a DataFrame, as docs/RESULTS.md has it. */
function isTable(it) {
  return Boolean(it) && Array.isArray(it.columns) && Array.isArray(it.index) && Array.isArray(it.data) && Array.isArray(it.shape);
}

const numeric = (kind) => /^(u?int|float|complex|Int|UInt|Float|bool)/.test(kind ?? "");

/* So many digits after the point that each number of the column has the seven that matter, but at most four. */
function digitsOf(column) {
  const needed = (it) => (typeof it === "number" && Number.isFinite(it) ? (String(Number(it.toPrecision(7))).split("e")[0].split(".")[1] ?? "").length : 0);
  return Math.min(4, Math.max(0, ...column.map(needed)));
}

function value(it, kind, digits) {
  if (it === null || it === undefined) return h("span", { class: "faint" }, "–");
  if (typeof it === "number" && /^(float|Float)/.test(kind ?? "")) {
    const small = it !== 0 && Math.abs(it) < 10 ** -digits;
    return small || Math.abs(it) >= 1e12 ? String(Number(it.toPrecision(5))) : it.toFixed(digits);
  }
  if (typeof it === "string" && /^datetime/.test(kind ?? "")) return shown(it.replace(/T00:00:00(\.0+)?Z?$/, "").replace(/\.0+Z?$/, "").replace("T", " "));
  return shown(typeof it === "object" ? JSON.stringify(it) : it, 200);
}

const label = (it) => shown(Array.isArray(it) ? it.join(" · ") : it, 100);

function row(it, index, kinds, digits) {
  return h("tr", {}, h("th", { scope: "row" }, label(it.index[index])),
    (it.data[index] ?? []).map((cell, i) => h("td", { class: numeric(kinds[i]) ? "number" : "words" }, value(cell, kinds[i], digits[i]))));
}

function table(it) {
  const kinds = it.dtypes ?? [];
  const digits = it.columns.map((_, i) => digitsOf(it.data.map((one) => one?.[i])));
  const body = h("tbody", {}, it.index.slice(0, ROWS_SHOWN).map((_, i) => row(it, i, kinds, digits)));
  const [rows, columns] = it.shape;
  const box = h("div", { class: "frame-table" },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" },
      h("table", { class: "data" },
        h("thead", {}, h("tr", {}, h("th", {}),
          it.columns.map((it, i) => h("th", { scope: "col", class: numeric(kinds[i]) ? "number" : "words", title: shown(kinds[i] ?? "") }, label(it))))),
        body)));
  const foot = h("p", { class: "caption" }, `${shown(rows)} × ${shown(columns)}`);
  if (it.index.length > ROWS_SHOWN) {
    const more = button(`Show ${it.index.length}${it.truncated ? " of the" : ""} rows`, () => {
      body.append(...it.index.slice(ROWS_SHOWN).map((_, i) => row(it, i + ROWS_SHOWN, kinds, digits)));
      more.remove();
    }, { class: "small" });
    foot.append(" ", more);
  }
  box.append(foot);
  return box;
}

/* ---- pictures ---- */

function encoded(content) {
  const raw = new TextEncoder().encode(content);
  let binary = "";
  for (let i = 0; i < raw.length; i += 0x8000) binary += String.fromCharCode(...raw.subarray(i, i + 0x8000));
  return btoa(binary);
}

/* An address without an origin, so that nothing in it is ever this page's. An SVG in an image runs no script. */
function picture(type, data) {
  const content = type === "image/svg+xml" ? encoded(data) : String(data).replace(/\s/g, "");
  const node = h("img", { class: "picture", alt: "Figure that the cell has shown", src: `data:${type};base64,${content}` });
  node.addEventListener("error", () => node.replaceWith(h("p", { class: "caption" }, "A picture that cannot be shown.")));
  return node;
}

/* ---- HTML ---- */

const theme = () => getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1" ? "dark" : "light";
const frames = new Map();

addEventListener("message", (event) => {
  for (const [node, html] of frames) {
    if (!node.isConnected) frames.delete(node);
    else if (node.contentWindow === event.source) hear(node, html, event.data);
  }
});

function hear(node, html, said) {
  if (said?.lair === "ready") node.contentWindow.postMessage({ html, theme: theme() }, "*");
  else if (said?.lair === "height" && said.height > 0) node.height = Math.min(Math.ceil(said.height), FRAME_HIGHEST);
}

export function themeChanged() {
  for (const node of frames.keys()) node.contentWindow?.postMessage({ theme: theme() }, "*");
}

function frame(html) {
  const node = h("iframe", { class: "html", sandbox: "allow-scripts", src: "/dashboard/frame.html", title: "Output as HTML", height: "40", loading: "lazy", referrerpolicy: "no-referrer" });
  frames.set(node, html);
  return node;
}

/* ---- one value in its forms ---- */

const JSON_KIND = /[/+.]json$/;

export function bundle(data, fallback) {
  const it = data ?? {};
  const kind = PICTURES.find((kind) => typeof it[kind] === "string");
  const html = typeof it["text/html"] === "string" ? it["text/html"] : null;
  const words = typeof it["text/plain"] === "string" ? it["text/plain"] : fallback;
  if (isTable(it["application/json"])) return table(it["application/json"]);
  if (kind) return picture(kind, it[kind]);
  if (html && !/<script/i.test(html)) return frame(html);
  for (const type of ["text/markdown", "text/latex"]) if (typeof it[type] === "string") return text(it[type], "value");
  const node = words === undefined || words === null
    ? text(JSON.stringify(Object.entries(it).find(([type]) => JSON_KIND.test(type))?.[1] ?? null, null, 2), "value")
    : text(words, "value");
  return html ? h("div", {}, node, h("p", { class: "caption" }, "The page of this output has scripts, which do not run here.")) : node;
}

/* ---- the parts of a result that are told in words ---- */

const line = (kind, ...parts) => h("p", { class: `told ${kind}` }, parts);

/* Sentences for people, of a result or of another answer: notes in proto/causes.h. */
const BAD = ["cause", "fate"];
const ELSEWHERE = ["blocked", "artifacts"]; // lists of their own

export function notes(it) {
  return (it?.notes ?? []).filter((one) => !ELSEWHERE.includes(one.about)).map((one) => line(BAD.includes(one.about) ? "bad" : "warn", shown(one.text, 2000)));
}

export function blocked(acts) {
  return acts.map((act) => line("blocked", h("strong", {}, "Blocked "), `${shown(act.event)} `, name(act.target), h("span", { class: "reason" }, shown(act.reason))));
}

function artifacts(it, onFile) {
  if (!it.artifacts?.length) return null;
  return h("p", { class: "told files" }, "Files: ",
    it.artifacts.map((one, i) => [i ? ", " : "", button(name(one.path), () => onFile(one.path), { class: "link", title: `${shown(one.change)}, ${bytes(one.size)}` })]),
    it.artifacts_more ? " and more" : null);
}

const cross = () => svg("svg", { viewBox: "0 0 16 16", width: "14", height: "14", "aria-hidden": "true" },
  svg("path", { d: "M4 4l8 8M12 4l-8 8", stroke: "currentColor", "stroke-width": "1.8", "stroke-linecap": "round" }));

export function failure(error) {
  const trace = typeof error.traceback === "string" ? error.traceback.trimEnd() : "";
  return h("div", { class: "failure" },
    h("p", { class: "what" }, cross(), h("strong", {}, shown(error.name)), error.value ? [": ", shown(error.value, 2000)] : null),
    error.suggestion ? h("p", {}, `Did you mean ${shown(error.suggestion)}?`) : null,
    trace ? h("details", {}, h("summary", {}, "Traceback"), text(trace, "trace")) : null);
}

/* What comes after the output of a cell that has ended. */
export function ending(result, onFile) {
  return [
    result.text !== null && result.text !== undefined ? bundle(result.data, result.text) : null,
    result.error ? failure(result.error) : null,
    blocked(result.blocked ?? []),
    notes(result),
    artifacts(result, onFile),
  ];
}
