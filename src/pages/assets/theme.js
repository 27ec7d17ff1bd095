// Applies the chosen theme before the first paint. Without a choice, the system's theme applies.
"use strict";

const chosen = { get: (name) => { try { return localStorage.getItem(name); } catch { return null; } } };
const theme = chosen.get("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
