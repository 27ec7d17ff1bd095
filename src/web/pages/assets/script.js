// Keeps a page up to date: ages every second, the rest by asking for the same page again. Without this script the
// page says the same, as of when it was loaded.
"use strict";

const REFRESH = 15000;

function span(seconds) {
  seconds = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(seconds / 60);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${minutes} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h` + (minutes % 60 ? ` ${minutes % 60} min` : "");
  return `${Math.floor(seconds / 86400)} d`;
}

// The reader's clock may be wrong; what counts is how long ago the page was made by the exporter's.
let made = Date.parse(document.querySelector("#refreshed time").dateTime);
let loaded = performance.now();

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
}

let paused = false;

function isBusy() {
  const active = document.activeElement;
  const inside = active && active.closest && active.closest("main form, main pre");
  return paused || document.hidden || inside || String(document.getSelection()) !== "";
}

async function refresh() {
  if (isBusy()) return;
  try {
    const answer = await fetch(location.href, { cache: "no-cache" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = page.querySelector("main");
    if (!main || isBusy()) return;
    const open = [...document.querySelectorAll("main details")].map((details) => details.open);
    [...main.querySelectorAll("details")].forEach((details, index) => (details.open = open[index] || false));
    const focused = document.activeElement && document.activeElement.getAttribute("href");
    document.querySelector("main").replaceChildren(...main.childNodes);
    if (focused) document.querySelector(`main a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    document.querySelector("#refreshed").replaceChildren(...page.querySelector("#refreshed").childNodes);
    made = Date.parse(document.querySelector("#refreshed time").dateTime);
    loaded = performance.now();
    document.body.classList.remove("offline");
    show();
  } catch {
    document.body.classList.add("offline");
  }
}

// What works only with a script is shown only with it.
function show() {
  tell();
  if (navigator.clipboard) for (const button of document.querySelectorAll(".copy")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
  button.textContent = "Copied";
});

const pause = document.querySelector("#pause");
pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Paused" : "Pause";
});

show();
setInterval(tell, 1000);
setInterval(refresh, REFRESH);
