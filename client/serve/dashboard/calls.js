/* Calls of functions that somebody has to approve, and those that wait otherwise. */
import * as api from "./api.js";
import { ago, ask, button, bytes, count, h, keep, name, put, shown, told } from "./dom.js";

function argument(key, value) {
  return [h("dt", {}, name(key)), h("dd", {}, h("code", {}, shown(JSON.stringify(value), 2000)))];
}

function argumentsOf(call) {
  if (!call.arguments) return h("p", { class: "caption" }, `Its arguments are ${bytes(call.bytes)}, too many to be shown.`);
  const all = Object.entries(call.arguments);
  return all.length ? h("dl", { class: "arguments" }, all.map(([key, value]) => argument(key, value))) : h("p", { class: "caption" }, "Without arguments.");
}

async function refuse(call) {
  const given = await ask({ title: `Refuse ${shown(call.function)}`, text: "The cell gets a PermissionError with your reason.",
                            fields: [{ label: "Reason", name: "reason", maxlength: "1000" }], yes: "Refuse", danger: true });
  if (!given) return;
  await api.answer(call, { error: "PermissionError", text: `${call.function} was refused${given.reason ? `: ${given.reason}` : ""}` });
}

async function answerHeld(call) {
  const given = await ask({ title: `Answer ${shown(call.function)}`, text: "What the call returns, as JSON. Nothing is None.",
                            fields: [{ label: "Value", name: "value" }], yes: "Answer" });
  if (!given) return;
  let value = null;
  try {
    value = given.value.trim() ? JSON.parse(given.value) : null;
  } catch {
    throw new Error("That is no JSON. Text is in quotes.");
  }
  await api.answer(call, { value });
}

const WORDS = { asks: "asks for approval", held: "is put aside", out: "waits for its program" };

function card(call, withSession, after) {
  const age = h("span", { class: "age" });
  const done = (action) => told(async () => {
    await action();
    await after();
  });
  const row = h("div", { class: "row" });
  if (call.state === "asks")
    row.append(button("Approve", done(() => api.answer(call, { approve: true })), { class: "primary" }), button("Refuse…", done(() => refuse(call))));
  else if (call.state === "held")
    row.append(button("Answer…", done(() => answerHeld(call)), { class: "primary" }), button("Refuse…", done(() => refuse(call))));
  const where = withSession && call.session
    ? h("a", { href: `#/s/${encodeURIComponent(call.session)}` }, name(call.session)) : null;
  const node = h("article", { class: `call ${call.state}`, "aria-label": `Call of ${shown(call.function)}` },
    h("header", {}, h("code", { class: "function" }, shown(call.function)), ` ${WORDS[call.state] ?? ""}`, age),
    h("p", { class: "caption" }, where, where ? ", " : null, call.cell ? `cell ${call.cell}` : null, call.why ? ` · ${shown(call.why, 500)}` : null),
    argumentsOf(call), row);
  return { node, update: (it) => put(age, ago(it.age)) };
}

const keyOf = (call) => `${call.session} ${call.key} ${call.cell} ${call.number} ${call.state}`;

export class Calls {
  constructor(after, withSession) {
    this.after = after;
    this.withSession = withSession;
    this.title = h("h2", {});
    this.list = h("div", { class: "calls" });
    this.node = h("section", { class: "waiting", hidden: true, "aria-live": "polite" }, this.title, this.list);
  }

  update(calls) {
    const shownOnes = calls.filter((it) => it.state !== "out");
    this.node.hidden = shownOnes.length === 0;
    put(this.title, shownOnes.length === 1 ? "A call waits for you" : `${count(shownOnes.length, "call")} wait for you`);
    keep(this.list, shownOnes, keyOf, (call) => card(call, this.withSession, this.after));
  }
}
