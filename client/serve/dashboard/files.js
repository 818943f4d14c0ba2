/* The files of a session: list, download, upload. */
import * as api from "./api.js";
import { ago, ask, button, bytes, h, name, note, shown, told } from "./dom.js";

const LISTS_MAX = 3;

export class Files {
  constructor(page) {
    this.page = page;
    this.directory = "";
    this.where = h("nav", { class: "where", "aria-label": "Directory" });
    this.body = h("tbody", {});
    this.more = h("p", { class: "caption", hidden: true }, "There are more files than are listed here.");
    this.empty = h("p", { class: "empty" }, "No files here. Drop some, or let a cell write them.");
    this.chooser = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to upload", onchange: told(() => this.upload(this.chooser.files)) });
    this.drop = h("div", { class: "drop" },
      h("div", { class: "row" }, this.where, button("Upload…", () => this.chooser.click()), this.chooser),
      h("table", { class: "list" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), h("th", { scope: "col", class: "number" }, "Size"), h("th", { scope: "col", class: "number" }, "Changed"), h("th", { scope: "col", "aria-label": "Delete" }))),
        this.body),
      this.more, this.empty);
    this.node = this.drop;
    this.drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.drop.classList.add("over");
    });
    for (const end of ["dragleave", "drop"]) this.drop.addEventListener(end, () => this.drop.classList.remove("over"));
    this.drop.addEventListener("drop", (event) => {
      event.preventDefault();
      told(() => this.upload(event.dataTransfer.files))();
    });
  }

  async load() {
    const listed = await this.all().catch((error) => {
      if (error.code !== "no_file" || !this.directory) throw error;
      this.directory = "";
      return this.all();
    });
    const files = listed.filter((it) => !String(it.name).startsWith(".lair-"));
    files.sort((a, b) => (b.kind === "directory") - (a.kind === "directory") || String(a.name).localeCompare(String(b.name), "en", { numeric: true }));
    const seen = JSON.stringify([this.directory, files]);
    if (seen === this.seen) return;
    this.seen = seen;
    this.paths();
    this.body.replaceChildren(...files.map((it) => this.row(it)));
    this.empty.hidden = files.length > 0;
    this.body.parentElement.hidden = files.length === 0;
  }

  /* A list has at most a thousand; more than some of these nobody looks at. */
  async all() {
    const files = [];
    let after = 0;
    for (let i = 0; i < LISTS_MAX; i++) {
      const list = await api.files(this.page.id, this.directory, after);
      files.push(...list.files);
      after = list.next;
      if (!after) break;
    }
    this.more.hidden = !after;
    return files;
  }

  paths() {
    const parts = this.directory ? this.directory.split("/") : [];
    this.where.replaceChildren(button("workspace", told(() => this.go("")), { class: "link" }),
      ...parts.flatMap((part, i) => [" / ", button(name(part), told(() => this.go(parts.slice(0, i + 1).join("/"))), { class: "link" })]));
  }

  row(it) {
    const path = this.directory ? `${this.directory}/${it.name}` : it.name;
    const directory = it.kind === "directory";
    const what = directory ? button([name(it.name), "/"], told(() => this.go(path)), { class: "link" })
      : it.kind === "file" ? button(name(it.name), told(() => this.download(path)), { class: "link", title: "Download" })
      : h("span", { title: shown(it.kind) }, name(it.name));
    return h("tr", {}, h("td", {}, what), h("td", { class: "number" }, directory ? "" : bytes(it.size)),
      h("td", { class: "number" }, ago(Math.max(0, Date.now() / 1000 - it.modified))),
      h("td", { class: "number" }, button("×", told(() => this.remove(path, directory)), { class: "quiet small", title: "Delete", "aria-label": `Delete ${shown(it.name, 80)}` })));
  }

  /* A cell does it, with the rights of the session, so undo brings it back. */
  async remove(path, directory) {
    const sure = await ask({ title: `Delete ${shown(path, 80)}?`, text: `${directory ? "The directory and all that is in it" : "The file"} is deleted by a cell. Undo that, and it is there again.`, yes: "Delete", danger: true });
    if (!sure) return;
    const literal = JSON.stringify(path).replace(/[\u007f-\uffff]/g, (it) => "\\u" + it.charCodeAt(0).toString(16).padStart(4, "0"));
    const text = `${literal}.encode("utf-16", "surrogatepass").decode("utf-16")`;
    const where = /[\ud800-\udfff]/.test(path) ? text : literal;
    this.page.cells.run(directory ? `__import__("shutil").rmtree(${where})` : `__import__("os").remove(${where})`);
  }

  async go(directory) {
    this.directory = directory;
    await this.load();
  }

  async download(path) {
    const blob = await api.download(this.page.id, path);
    const address = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
    h("a", { href: address, download: path.split("/").pop() }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }

  async upload(files) {
    const names = new Set([...this.body.querySelectorAll(".name")].map((it) => it.textContent));
    for (const file of [...files]) {
      if (names.has(file.name) && !(await ask({ title: "Replace the file?", text: `There is a file ${shown(file.name)} already.`, yes: "Replace", danger: true }))) continue;
      await api.upload(this.page.id, this.directory ? `${this.directory}/${file.name}` : file.name, file);
      note(`${file.name} is in the session.`);
    }
    this.chooser.value = "";
    await this.load();
  }
}
