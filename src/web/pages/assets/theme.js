// The theme that the reader chose, before anything is drawn. Without a choice it is the system's.
"use strict";

const chosen = { get: (name) => { try { return localStorage.getItem(name); } catch { return null; } } };
const theme = chosen.get("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
