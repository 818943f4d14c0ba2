/* Inside the frame of an output: takes the HTML once, from the page, and tells how high it is. The policy of this
 * document lets no script of the HTML run: it has none inline, and loads none but this. */
"use strict";

/* What would lead this frame elsewhere, or make the browser look a name up, without any script. */
const UNWANTED = "meta, link, base, script, iframe, object, embed, portal, fencedframe";

let filled = false;

function measure() {
  parent.postMessage({ lair: "height", height: Math.ceil(document.body.getBoundingClientRect().height) }, "*");
}

addEventListener("message", (event) => {
  if (event.source !== parent || typeof event.data !== "object") return;
  document.documentElement.dataset.theme = event.data.theme;
  if (filled || typeof event.data.html !== "string") return;
  filled = true;
  const read = new DOMParser().parseFromString(event.data.html, "text/html");
  for (const node of read.querySelectorAll(UNWANTED)) node.remove();
  document.body.append(...read.head.querySelectorAll("style"), ...read.body.childNodes);
  new ResizeObserver(measure).observe(document.body);
  measure();
});
/* A link would lead this frame elsewhere, and nobody would see where. */
addEventListener("click", (event) => event.preventDefault(), true);
addEventListener("DOMContentLoaded", () => parent.postMessage({ lair: "ready" }, "*"));
