// Keeps a page up to date: ages every second, the rest by fetching the same page again and patching what changed.
// Without this script the page shows the same content as of when it was loaded.
"use strict";

const REFRESH_MILLIS = 15000;
const TIMEOUT_MILLIS = 10000;
const TYPING_MILLIS = 200;
const COPIED_MILLIS = 2000;

const $ = (selector) => document.querySelector(selector);

function span(seconds) {
  seconds = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(seconds / 60);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${minutes} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h` + (minutes % 60 ? ` ${minutes % 60} min` : "");
  return `${Math.floor(seconds / 86400)} d`;
}

// The reader's clock may be wrong: ages count from when the exporter made the page, by its own clock.
let made = Date.parse($("#refreshed time").dateTime);
let loaded = performance.now();
const started = document.body.dataset.started;
let title = document.title;
const icon = $("link[rel=icon]");
const icons = { good: icon.href, bad: icon.dataset.trouble };

function tell() {
  const now = made + performance.now() - loaded;
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const past = (now - Date.parse(time.dateTime)) / 1000;
    const words = {
      ago: () => `${span(past)} ago`,
      age: () => span(past),
      until: () => (past >= 0 ? "now" : `in ${span(-past)}`),
    };
    const text = words[time.dataset.relative]();
    if (time.textContent !== text) time.textContent = text;
  }
  if (trouble) say(trouble, `since ${clock(troubleSince)} (${span((performance.now() - troubleSince) / 1000)})`);
}

// A time of performance.now() by the exporter's clock.
function clock(moment) {
  return new Date(made + moment - loaded).toISOString().slice(11, 19) + " UTC";
}

// Why the page is out of date, and since when.
let trouble = "";
let troubleSince = 0;

function say(what, since) {
  const line = $("#trouble");
  const text = since ? `${what} ${since}; this page shows what was known then.` : what;
  if (line.textContent !== text) line.textContent = text;
  line.hidden = text === "";
}

function frozen(what) {
  if (!trouble) troubleSince = performance.now();
  trouble = what;
  document.body.classList.add("frozen");
  document.title = `✕ ${what} · ${title}`;
  icon.href = icons.bad;
  tell();
}

function live() {
  trouble = "";
  document.body.classList.remove("frozen");
  document.title = title;
  icon.href = icons.good;
  const restarted = document.body.dataset.started;
  say(restarted === started ? "" : `The exporter restarted at ${restarted.slice(11, 19)} UTC.`);
}

// Attributes that this script sets on a plot.
const CHART = ["data-at", "tabindex", "role", "aria-label"];

// Makes `old` equal to `fresh` in place, and keeps what the reader did: focus, selection, scroll, open details, text.
function patch(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || key(old) !== key(fresh)) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.matches(".readout")) return;
  const kept = old.matches(".chart") ? CHART : { DETAILS: ["open"], INPUT: ["value", "checked"] }[old.nodeName] || [];
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !kept.includes(name)) old.setAttribute(name, value);
  }
  if (old.dataset?.relative) return;
  if (old.dataset?.utc !== undefined) delete old.dataset.utc;
  patchChildren(old, fresh);
}

// Children with a key keep their node wherever they move; the others are matched by position.
function patchChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.childNodes) if (key(child)) keyed.set(key(child), child);
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const known = key(child) ? keyed.get(key(child)) : place && !key(place) ? place : null;
    if (!known) {
      old.insertBefore(child, place);
      continue;
    }
    if (known === place) place = place.nextSibling;
    else old.insertBefore(known, place);
    patch(known, child);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function key(node) {
  return (node.nodeType === Node.ELEMENT_NODE && (node.id || node.dataset.key)) || "";
}

const refused = {
  401: "The exporter requires a password",
  403: "The exporter refuses this page",
  404: "This page is gone: the configuration no longer has it",
  429: "The exporter rejects so many requests",
  503: "The exporter is too busy to answer",
};

let paused = false;
let latest = 0;

async function refresh(asked) {
  const turn = ++latest;
  try {
    const answer = await fetch(location.href, { cache: "no-cache", signal: AbortSignal.timeout(TIMEOUT_MILLIS) });
    const text = answer.ok ? await answer.text() : "";
    // A refresh that nobody asked for changes nothing on a page that is paused.
    if (turn !== latest || (paused && !asked)) return;
    if (!answer.ok) return frozen(refused[answer.status] || `The exporter answers ${answer.status}`);
    const page = new DOMParser().parseFromString(text, "text/html");
    if (!page.querySelector("#refreshed time")) return frozen("Something other than the exporter answers here");
    title = page.title;
    patch($("main"), page.querySelector("main"));
    patch($("#refreshed"), page.querySelector("#refreshed"));
    patch($("footer"), page.querySelector("footer"));
    document.body.dataset.started = page.body.dataset.started;
    made = Date.parse($("#refreshed time").dateTime);
    loaded = performance.now();
    live();
    show();
  } catch {
    if (turn === latest) frozen("The exporter does not answer");
  }
}

// Shows what works only with this script.
function show() {
  tell();
  zone();
  for (const chart of document.querySelectorAll(".chart")) {
    chart.tabIndex = 0;
    chart.setAttribute("role", "group");
    chart.setAttribute("aria-label", "Plot; the arrow keys read its values");
    if (chart.dataset.at) point(chart, () => Number(chart.dataset.at));
  }
  if (navigator.clipboard) for (const button of document.querySelectorAll(".copy")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const text = button.dataset.copy ?? button.parentElement.querySelector("pre, code").textContent;
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), COPIED_MILLIS);
});

// `/` goes to the filter; Escape leaves it.
document.addEventListener("keydown", (event) => {
  const filter = $(".filter input[type=search]");
  if (!filter || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    filter.focus();
    filter.select();
  } else if (event.key === "Escape" && event.target === filter) {
    filter.blur();
  }
});

// Results follow the typing, and the address follows the filter.
let typed = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form.filter");
  if (!form) return;
  clearTimeout(typed);
  typed = setTimeout(() => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    const address = new URL(form.action);
    address.search = query;
    history.replaceState(null, "", address);
    refresh(true);
  }, TYPING_MILLIS);
});
// A change of the address would cancel the way to the page of the form.
document.addEventListener("submit", () => clearTimeout(typed));

// Shows the values under the pointer, or under the crosshair moved by the arrow keys, from the plot's own table.
function point(chart, find) {
  const figure = chart.closest("figure");
  const rows = [...figure.querySelectorAll("tr[data-x]")];
  const at = find(rows);
  const svg = chart.querySelector("svg");
  const readout = figure.querySelector(".readout");
  let cross = svg.querySelector("line.cross");
  if (!rows[at]) {
    cross?.remove();
    readout.hidden = true;
    delete chart.dataset.at;
    return;
  }
  if (!cross) {
    cross = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cross.setAttribute("class", "cross");
    svg.append(cross);
  }
  for (const [name, value] of Object.entries({ x1: rows[at].dataset.x, x2: rows[at].dataset.x, y1: 0, y2: svg.viewBox.baseVal.height })) {
    cross.setAttribute(name, value);
  }
  const names = [...figure.querySelectorAll("thead th")].map((cell) => cell.textContent);
  const values = [...rows[at].children].map((cell) => cell.textContent);
  readout.textContent = values.map((value, index) => `${names[index]} ${value}`).join(" · ");
  readout.hidden = false;
  chart.dataset.at = at;
}

function nearest(chart, event) {
  const svg = chart.querySelector("svg");
  const box = svg.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
  return (rows) => rows.reduce((best, row, at) => (Math.abs(row.dataset.x - x) < Math.abs(rows[best].dataset.x - x) ? at : best), 0);
}

document.addEventListener("pointermove", (event) => {
  const chart = event.target.closest?.(".chart");
  if (chart) point(chart, nearest(chart, event));
});
document.addEventListener("pointerout", (event) => {
  const chart = event.target.closest?.(".chart");
  if (chart && !chart.contains(event.relatedTarget)) point(chart, () => -1);
});
document.addEventListener("keydown", (event) => {
  const chart = event.target.closest?.(".chart");
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (!chart || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") point(chart, () => -1);
  if (!(event.key in steps)) return;
  event.preventDefault();
  point(chart, (rows) => Math.max(0, Math.min(rows.length - 1, Number(chart.dataset.at ?? rows.length) + steps[event.key])));
});

// The reader's choices, stored by the browser if it allows that.
const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* for this page only */ } };

const themes = ["system", "light", "dark"];
const themeButton = $("#theme");
function dress(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  themeButton.textContent = `Theme: ${name}`;
  keep("theme", name);
}
themeButton.hidden = false;
themeButton.textContent = `Theme: ${document.documentElement.dataset.theme || "system"}`;
themeButton.addEventListener("click", () => {
  const now = document.documentElement.dataset.theme || "system";
  dress(themes[(themes.indexOf(now) + 1) % themes.length]);
});

// Times of the page in the reader's time zone. Those in plots and messages stay UTC.
let local = chosen.get("times") === "local";
const two = (number) => String(number).padStart(2, "0");
function zoned(time) {
  time.dataset.utc ??= time.textContent;
  const date = new Date(time.dateTime);
  if (!local || Number.isNaN(date.getTime())) return time.dataset.utc;
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  const written = time.dataset.utc.replace(/\d{4}-\d\d-\d\d/, day).replace(/\d\d:\d\d:\d\d/, clock);
  return written.replace(" UTC", " local");
}
function zone() {
  for (const time of document.querySelectorAll("time:not([data-relative])")) {
    const text = zoned(time);
    if (time.textContent !== text) time.textContent = text;
  }
  $("#times").textContent = local ? "Local time" : "UTC";
  $("#zone").textContent = local ? "Times are local; those of plots and messages are UTC." : "All times are UTC.";
}
$("#times").hidden = false;
$("#times").addEventListener("click", () => {
  local = !local;
  keep("times", local ? "local" : "utc");
  zone();
});

const pause = $("#pause");
pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Paused" : "Pause";
  if (!paused) refresh();
});

show();
setInterval(() => paused || tell(), 1000);
setInterval(() => paused || document.hidden || refresh(), REFRESH_MILLIS);
document.addEventListener("visibilitychange", () => document.hidden || paused || refresh());
