/* The API: every path that the page asks for is in this file. Errors are sentences. */

const KEY = "lair-token";

export class Refused extends Error {
  constructor(status, problem, after) {
    super(problem?.detail || problem?.title || `the server answered ${status}`);
    this.name = "Refused";
    this.status = status;
    this.code = problem?.code;
    this.after = Number(after) || 0;
  }
}

export class Unreachable extends Error {
  constructor() {
    super("The server does not answer.");
    this.name = "Unreachable";
  }
}

export function token() {
  return sessionStorage.getItem(KEY);
}

export function setToken(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

export async function send(method, path, { body, json, headers = {}, signal } = {}) {
  const all = { ...headers };
  if (token()) all.Authorization = `Bearer ${token()}`;
  if (json !== undefined) {
    all["Content-Type"] = "application/json";
    body = JSON.stringify(json);
  }
  let answer;
  try {
    answer = await fetch(path, { method, body, headers: all, signal, credentials: "omit", cache: "no-store", redirect: "error" });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Unreachable();
  }
  if (answer.ok) return answer;
  throw new Refused(answer.status, await answer.json().catch(() => null), answer.headers.get("Retry-After"));
}

async function json(method, path, options) {
  const answer = await send(method, path, options);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

const get = (path) => json("GET", path);
const post = (path, body = {}, more = {}) => json("POST", path, { json: body, ...more });

/* ---- events ---- */

function parsed(block) {
  let type = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length ? { type, data: JSON.parse(data.join("\n")) } : null;
}

/* A text/event-stream, by fetch, since an EventSource sends no token. */
async function stream(method, path, options, on) {
  const answer = await send(method, path, { ...options, headers: { Accept: "text/event-stream", ...options.headers } });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : new Unreachable();
    });
    if (done) return;
    const blocks = (rest + value).replace(/\r\n/g, "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parsed(block);
      if (event) on(event.type, event.data);
    }
  }
}

/* ---- what there is ---- */

const at = (id) => `/v1/sessions/${encodeURIComponent(id)}`;

export const metrics = async () => (await send("GET", "/metrics")).text();
export const sessions = async () => (await get("/v1/sessions")).sessions;
export const calls = async () => (await get("/v1/calls")).calls;

export const open = (id, profile) => json("PUT", at(id), { json: profile ? { profile } : {} });
export const info = (id) => get(at(id));
export const shutdown = (id) => json("DELETE", at(id));
export const interrupt = (id) => post(`${at(id)}/interrupt`);
export const reset = (id) => post(`${at(id)}/reset`);
export const save = (id) => post(`${at(id)}/save`);

export const history = async (id) => (await get(`${at(id)}/cells`)).cells;
export const complete = (id, code, cursor) => post(`${at(id)}/complete`, { code, cursor });
export const vars = (id) => get(`${at(id)}/vars`);

/* Whoever leaves does not stop the cell: it has a key. */
export const exec = (id, code, key, signal, on) =>
  stream("POST", `${at(id)}/exec`, { json: { code, input: true }, headers: { "Idempotency-Key": key }, signal }, on);
export const detach = (id, code, key) => json("POST", `${at(id)}/exec`, { json: { code, input: true, detach: true }, headers: { "Idempotency-Key": key } });
export const watchKey = (id, key, signal, on) => stream("GET", `${at(id)}/results/${encodeURIComponent(key)}?input=true`, { signal }, on);
export const watch = (id, cell, signal, on) => stream("GET", `${at(id)}/cells/${cell}?input=true`, { signal }, on);
export const input = (id, text) => post(`${at(id)}/input`, { text });

export const checkpoints = async (id) => (await get(`${at(id)}/checkpoints`)).checkpoints;
export const checkpoint = (id, name) => post(`${at(id)}/checkpoints`, name ? { name } : {});
export const diff = (id, since, until) => {
  const query = new URLSearchParams();
  if (since) query.set("since", since);
  if (until) query.set("until", until);
  return get(`${at(id)}/diff?${query}`);
};
export const drop = (id, name) => json("DELETE", `${at(id)}/checkpoints/${encodeURIComponent(name)}`);
export const undo = (id, n, keep_files) => post(`${at(id)}/undo`, { n, keep_files });
export const restore = (id, name, keep_files) => post(`${at(id)}/restore`, { name, keep_files });
export const branch = (id, branch, from, files) => post(`${at(id)}/branch`, { branch, ...(from ? { from } : {}), files });

export const files = (id, directory, after) => {
  const query = new URLSearchParams();
  if (directory) query.set("path", directory);
  if (after) query.set("after", after);
  return get(`${at(id)}/files?${query}`);
};
const file = (id, path) => `${at(id)}/file?path=${encodeURIComponent(path)}`;
export const download = async (id, path) => (await send("GET", file(id, path))).blob();
export const upload = (id, path, body) => json("PUT", file(id, path), { body, headers: { "Content-Type": "application/octet-stream" } });

export const answer = (call, decision) =>
  post(`${at(call.session)}/calls/${call.number}`, { cell: call.cell, ...decision });
