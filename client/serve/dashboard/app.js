/* The dashboard: which page is shown, how it is kept up to date, and who asks. */
import * as api from "./api.js";
import { button, count, h, mark, name, note, put } from "./dom.js";
import { themeChanged } from "./output.js";
import { Overview } from "./overview.js";
import { SessionPage } from "./session.js";

const EVERY = 1000;
const AFTER_TROUBLE = 3000;

const main = document.getElementById("main");
const crumbs = document.getElementById("crumbs");
const link = document.getElementById("link");

/* ---- light and dark ---- */

const THEMES = [[null, "Theme: system"], ["light", "Theme: light"], ["dark", "Theme: dark"]];

function showTheme() {
  const now = document.documentElement.dataset.theme ?? null;
  put(document.getElementById("theme"), THEMES.find(([it]) => it === now)[1]);
  themeChanged();
  dispatchEvent(new Event("lair-theme"));
}

document.getElementById("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? null;
  const next = THEMES[(THEMES.findIndex(([it]) => it === now) + 1) % THEMES.length][0];
  if (next) document.documentElement.dataset.theme = next;
  else delete document.documentElement.dataset.theme;
  try {
    if (next) localStorage.setItem("lair-theme", next);
    else localStorage.removeItem("lair-theme");
  } catch {
    /* It holds as long as the page, then. */
  }
  showTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);

/* ---- who asks ---- */

function askForToken(why) {
  if (main.querySelector(".sign-in")) return;
  app.page?.leave();
  app.page = null;
  const field = h("input", { type: "password", autocomplete: "off", required: true, "aria-label": "Token" });
  const form = h("form", { class: "card sign-in", onsubmit: (event) => {
    event.preventDefault();
    api.setToken(field.value.trim());
    form.remove();
    app.route();
  } }, h("h1", {}, "This server asks for a token"), h("p", {}, why),
    h("label", { class: "field" }, h("span", {}, "Token"), field, h("small", {}, "It is kept in this tab, until you close it.")),
    h("div", { class: "row end" }, h("button", { type: "submit", class: "primary" }, "Go on")));
  main.replaceChildren(form);
  field.focus();
}

/* ---- pages ---- */

class App {
  page = null;

  route() {
    const match = location.hash.match(/^#\/s\/([^/]+)$/);
    let id = null;
    try {
      id = match ? decodeURIComponent(match[1]) : null;
    } catch {
      /* That is no name. */
    }
    this.page?.leave();
    this.page = id === null ? new Overview(this) : new SessionPage(id, this);
    crumbs.replaceChildren(h("a", { href: "#/", "aria-current": id === null ? "page" : null }, "Sessions"));
    if (id !== null) crumbs.append(h("span", { class: "slash", "aria-hidden": "true" }, "/"), h("span", { "aria-current": "page" }, name(id)));
    document.title = id === null ? "Lair" : `${id} – Lair`;
    main.replaceChildren(this.page.node);
    scrollTo(0, 0);
    this.poll();
  }

  /* One round at a time. A page that nobody looks at asks for nothing. */
  async poll() {
    clearTimeout(this.timer);
    this.again = this.polling;
    if (this.polling || !this.page) return;
    this.polling = true;
    let wait = EVERY;
    try {
      if (!document.hidden) await this.round();
    } catch (error) {
      wait = Math.max(AFTER_TROUBLE, Math.min(60, error.after ?? 0) * 1000);
      this.trouble(error);
    }
    this.polling = false;
    if (this.page) this.timer = setTimeout(() => this.poll(), this.again ? 0 : wait);
  }

  async round() {
    const page = this.page;
    const [sessions, calls] = await Promise.all([api.sessions(), api.calls()]);
    if (page !== this.page) return;
    this.connected(calls);
    await page.tick(calls, sessions);
    this.said = null;
    link.removeAttribute("title");
  }

  connected(calls) {
    const waiting = calls.filter((it) => it.state === "asks").length;
    put(link, waiting ? `${count(waiting, "call asks", "calls ask")} for approval` : "live");
    mark(link, "data-state", waiting ? "asks" : "live");
  }

  trouble(error) {
    if (error.status === 401) {
      const had = api.token();
      api.setToken(null);
      askForToken(had ? "The one that was given is not known." : "Whoever runs it has it: lair token add makes one.");
      put(link, "");
      return;
    }
    const slow = error.status === 429;
    put(link, error.name === "Unreachable" ? "no answer" : slow ? "slowed down" : "trouble");
    mark(link, "data-state", slow ? "asks" : "lost");
    link.title = error.message;
    if (error.name !== "Unreachable" && !slow && error.message !== this.said) note(error.message, true);
    this.said = error.message;
  }
}

const app = new App();

addEventListener("hashchange", () => app.route());
addEventListener("visibilitychange", () => document.hidden || app.poll());
showTheme();
app.route();
