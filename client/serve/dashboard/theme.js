/* Before anything is painted: the theme that was chosen, or the system's. */
"use strict";

(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("lair-theme");
  } catch {
    /* The browser keeps nothing: the system's, then. */
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
