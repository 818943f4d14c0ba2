/* The first page: all sessions, and how much is going on. */
import * as api from "./api.js";
import { Calls } from "./calls.js";
import { Load } from "./load.js";
import { age, ask, button, bytes, count, h, keep, mark, name, put, shown, told } from "./dom.js";

const WORDS = { starting: "starting", idle: "idle", busy: "running", grace: "stopping", restoring: "going back", resetting: "resetting", ending: "ending" };

export function wordOf(it) {
  return (WORDS[it.state] ?? shown(it.state)) + (it.queued ? ` +${it.queued}` : "");
}

async function shutdown(id, then) {
  if (!(await ask({ title: `Shut down ${shown(id)}?`, text: "Its variables, checkpoints and files are deleted.", yes: "Shut down", danger: true }))) return;
  await api.shutdown(id);
  await then();
}

const COLUMNS = ["Session", "State", "Profile", "Age", "Unused for", "Cells", "CPU", "Memory"];
const NUMBERS = 3;

/* How much of a processor it has used since the last look. */
function processor(had, it, now) {
  if (!had || had.birth !== it.birth || now <= had.now) return 0;
  return Math.max(0, (it.cpu - had.cpu) / (now - had.now));
}

function sessionRow(first, then) {
  let had = null;
  const link = h("a", { href: `#/s/${encodeURIComponent(first.session)}` }, name(first.session));
  const pill = h("span", { class: "pill" });
  const cells = COLUMNS.slice(2).map((_, i) => h("td", { class: i + 2 >= NUMBERS ? "number" : "" }));
  const meter = h("meter", { min: "0", max: "1", hidden: true, "aria-label": "Part of its memory limit" });
  const memory = h("span", {});
  cells[5].append(h("div", { class: "measured" }, meter, memory));
  const node = h("tr", {}, h("th", { scope: "row" }, link), h("td", {}, pill), cells,
    h("td", { class: "number" }, button("×", told(() => shutdown(first.session, then)), { class: "quiet small", title: "Shut down", "aria-label": `Shut down ${shown(first.session, 80)}` })));
  return {
    node,
    update(it) {
      const now = performance.now() / 1000;
      put(pill, wordOf(it));
      mark(pill, "data-state", it.state);
      const used = processor(had, it, now);
      [shown(it.profile), age(Date.now() / 1000 - it.created), it.state === "busy" ? "–" : age(it.idle), String(it.cells), `${Math.round(used * 100)} %`]
        .forEach((text, i) => put(cells[i], text));
      put(memory, bytes(it.memory));
      meter.hidden = !it.memory_limit;
      if (it.memory_limit) meter.value = Math.min(1, it.memory / it.memory_limit);
      had = { birth: it.birth, cpu: it.cpu, now };
    },
  };
}

export class Overview {
  constructor(app) {
    this.app = app;
    this.calls = new Calls(() => app.poll(), true);
    this.load = new Load();
    this.sum = h("p", { class: "sum" });
    this.body = h("tbody", {});
    this.table = h("div", { class: "scroll card" }, h("table", { class: "sessions" },
      h("thead", {}, h("tr", {}, COLUMNS.map((it, i) => h("th", { scope: "col", class: i >= NUMBERS ? "number" : "" }, it)), h("th", { scope: "col", "aria-label": "Shut down" }))), this.body));
    this.empty = h("div", { class: "card empty-page", hidden: true }, h("h2", {}, "No sessions"),
      h("p", {}, "A session is a Python that remembers. It begins when somebody uses it: here, or by the API, or with"), h("pre", {}, "lair exec -s demo 'x = 41'"));
    this.node = h("div", {},
      h("div", { class: "title" }, h("h1", {}, "Sessions"), this.sum, h("div", { class: "row actions" }, button("New session…", told(() => this.begin()), { class: "primary" }))),
      this.calls.node, this.empty, this.table, this.load.node);
  }

  async tick(calls, sessions) {
    this.calls.update(calls);
    const sorted = [...sessions].sort((a, b) => a.session.localeCompare(b.session, "en", { numeric: true }));
    keep(this.body, sorted, (it) => it.session, (it) => sessionRow(it, () => this.app.poll()));
    this.table.hidden = sorted.length === 0;
    this.empty.hidden = sorted.length > 0;
    const running = sorted.filter((it) => it.state === "busy").length;
    put(this.sum, sorted.length ? `${count(sorted.length, "session")}, ${running} running, ${bytes(sorted.reduce((sum, it) => sum + it.memory, 0))}` : "");
    await this.load.tick(sessions);
  }

  async begin() {
    const given = await ask({ title: "New session", fields: [{ label: "Name", name: "id", required: true, maxlength: "64" },
                                                             { label: "Profile", name: "profile", placeholder: "default", hint: "What it may do and use. Leave it empty for the default." }], yes: "Begin" });
    if (!given) return;
    await api.open(given.id, given.profile);
    location.hash = `#/s/${encodeURIComponent(given.id)}`;
  }

  leave() {
    this.load.leave();
  }
}
