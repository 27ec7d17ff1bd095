// The tools of all parts: the browser, pages that are watched, and the list of complaints.
import { createRequire } from "node:module";

const require = createRequire(process.env.NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const axe = require("axe-core");

// How long anything may take that should take a moment.
const DEADLINE_MILLIS = 30000;

export const [, , part, root, folder] = process.argv;
export const complaints = [];
export const check = (good, complaint) => good || complaints.push(complaint);

export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb"],
});

// A page that is watched: no error, no dialog, no request to anyone else.
export async function open(address, { width = 1440, height = 900, scheme = "light", scripts = true, quiet = false, base = root, ...more } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, javaScriptEnabled: scripts, timezoneId: "Asia/Kolkata", ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MILLIS);
  // A page that is to get into trouble is quiet about it.
  if (!quiet) {
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(`${address}: console: ${message.text()}`));
    page.on("response", (response) => check(response.status() < 400, `${response.url()}: ${response.status()}`));
  }
  page.on("pageerror", (error) => complaints.push(`${address}: ${error.message}`));
  page.on("dialog", (dialog) => { complaints.push(`${address}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => check(request.url().startsWith(base), `${address}: asks for ${request.url()}`));
  const answer = await page.goto(address);
  const policy = answer.headers()["content-security-policy"] || "";
  check(policy.includes("default-src 'none'") && !policy.includes("unsafe"), `${address}: policy ${policy}`);
  return page;
}

// Everything that axe finds, however small.
export async function accessible(page, what) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const violation of violations) {
    for (const node of violation.nodes.slice(0, 3)) complaints.push(`${what}: ${violation.impact} ${violation.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`);
  }
}

// Refreshes the page again and again until `holds` gives something true.
export async function until(page, what, holds) {
  const began = Date.now();
  for (;;) {
    const held = await holds();
    if (held) return held;
    if (Date.now() - began > DEADLINE_MILLIS) throw new Error(`waited for: ${typeof what === "function" ? what() : what}\n${(await page.locator("main").innerText()).slice(0, 600)}`);
    await page.waitForTimeout(200);
    await page.evaluate(() => refresh());
  }
}

// Clicks a link or button that leads to another page, and waits for it. Typing changes the address without another page.
export const follow = (page, what) => Promise.all([page.waitForEvent("load"), page.click(what)]);
export const names = (page) => page.locator("table.apps tbody tr .app").allTextContents();
export const text = (page, selector) => page.locator(selector).first().innerText();

// Lets the simulated service do wrong.
export async function faults(list, service = process.env.SERVICE) {
  const answer = await fetch(`${service}/simulator/faults`, { method: "PUT", body: JSON.stringify(list) });
  if (!answer.ok) throw new Error(`faults: ${answer.status} ${await answer.text()}`);
}
export const status = (code, more = {}) => ({ kind: { status: { status: code } }, ...more });
export const value = (field, json, more = {}) => ({ kind: { value: { field, json } }, ...more });
