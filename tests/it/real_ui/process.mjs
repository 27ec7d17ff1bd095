// The exporter as a process of its own: reloads, signals, its end and its return.
import { spawn } from "node:child_process";
import { copyFileSync } from "node:fs";
import { accessible, check, faults, folder, names, open, status, text, until } from "./rig.mjs";

const service = process.env.SERVICE;
const file = `${folder}/pds-exporter.toml`;
const children = [];

// Starts the exporter; gives its process and the address of its overview.
async function start(port, ...flags) {
  const environment = { ...process.env, PDS_EXPORTER__POLL__STALE_AFTER: "7m" };
  const address = ["--config.file", file, "--web.listen-address", `127.0.0.1:${port}`, "--web.route-prefix", "/pds"];
  const child = spawn(process.env.EXPORTER, [...address, ...flags], { env: environment, stdio: ["ignore", "ignore", "pipe"] });
  children.push(child);
  let log = "";
  const listening = await new Promise((resolve, reject) => {
    child.stderr.on("data", (data) => {
      log += data;
      const found = /listening.*address=(\S+)/.exec(log);
      if (found) resolve(found[1]);
    });
    child.on("exit", () => reject(new Error(`the exporter ended:\n${log}`)));
  });
  return { child, root: `http://${listening}/pds/` };
}

// Lets the exporter load this configuration.
function reload(child, name) {
  copyFileSync(`${folder}/${name}.toml`, file);
  child.kill("SIGHUP");
}

async function process_() {
  // An outage from the start: what is not known is not called "none".
  await faults([status(503)], service);
  copyFileSync(`${folder}/good.toml`, file);
  const { child, root } = await start(0, "--state.path", `${folder}/state`);
  const page = await open(root, { base: new URL(root).origin });
  const says = () => text(page, ".banner");
  await until(page, "the outage", async () => (await says()).includes("returns errors"));
  check(!/no request|no failures|none fail/i.test(await text(page, "body")), "an outage is called none");

  // An outage of seconds shows at once, and is over at once.
  for (let round = 0; round < 2; round++) {
    await faults([], service);
    await until(page, "all is well", async () => (await says()).includes("All numbers can be trusted"));
    if (round === 0) await faults([status(503)], service);
    if (round === 0) await until(page, "a short outage", async () => (await says()).includes("returns errors"));
  }

  await configuration(page, child, root);
  await addresses(page, root);
  await lifetime(page, child, root);
}

// The origin of each value; a reload that is refused, and why; a token that has expired.
async function configuration(page, child, root) {
  await page.goto(`${root}config`);
  const row = (key) => page.locator(`.configuration tr:has(th code:text-is("${key}"))`).first().innerText();
  check(/state".*--state\.path|flag/s.test(await row("state.path")), `state.path: ${await row("state.path")}`);
  check((await page.locator(`.configuration tr:has(th code:text-matches("^--"))`).count()) === 0, "flags are among the keys");
  check((await row("poll.stale_after")).includes("PDS_EXPORTER__POLL__STALE_AFTER"), `poll.stale_after: ${await row("poll.stale_after")}`);
  reload(child, "bad");
  await until(page, "the refused reload", async () => (await page.locator(".refused").count()) === 1);
  check((await text(page, ".refused")).includes("poll.intervall"), `refused because ${await text(page, ".refused")}`);
  await accessible(page, "a refused reload");
  await page.goto(root);
  check((await text(page, ".banner")).includes("The last reload of the configuration was refused"), "the verdict leaves the reload out");
  reload(child, "expired");
  await until(page, "the expired token", async () => (await text(page, ".facts")).includes("expired 3 d ago"));
  reload(child, "good");
  await until(page, "the good configuration", async () => (await text(page, ".banner")).includes("All numbers can be trusted"));
  await page.goto(`${root}config`);
  check((await page.locator(".refused").count()) === 0, "a reload that was refused is told for ever");
}

// Addresses that are not quite right, and the links that every page has.
async function addresses(page, root) {
  for (const [asked, given] of [["/", "/pds/"], ["/pds", "/pds/"]]) {
    await page.goto(new URL(asked, root).href);
    check(new URL(page.url()).pathname === given, `${asked} leads to ${page.url()}`);
  }
  const nowhere = await open(`${root}apps/p-1/none`, { base: root, quiet: true });
  check((await text(nowhere, "h1")) === "No such app" && (await nowhere.locator("nav a").count()) > 2, "no page for an app that is not there");
  check((await nowhere.locator(".top").evaluate((top) => getComputedStyle(top).display)) === "flex", "the page for an app that is not there has no style");
  await accessible(nowhere, "no such app");

  await page.goto(root);
  const [app] = await page.locator("table.apps .app").evaluateAll((links) => links.map((link) => link.href));
  for (const address of [root, `${root}config`, `${root}metrics-catalogue`, app]) {
    await page.goto(address);
    check((await page.locator('footer a[href^="/pds/metrics"]').count()) === 1, `${address} has no link to the metrics`);
  }
  check((await page.locator("#replies").count()) === 0, "raw replies are shown without being asked for");
  const json = async () => (await (await fetch(await page.locator("footer a").first().evaluate((link) => link.href))).json()).apps.map((app) => app.id);
  check((await json()).join() === decodeURIComponent(app.split("/").pop()), `the JSON of ${app} is about ${await json()}`);
  await page.goto(`${root}?name=embed`);
  check((await json()).length === 1, "the JSON of a filtered page is not filtered");

  // Readers share one rendering; a poll may come in between.
  const tags = await Promise.all(Array.from({ length: 20 }, async () => (await fetch(`${root}config`)).headers.get("etag")));
  check(tags.every(Boolean) && new Set(tags).size <= 2, `20 readers get ${new Set(tags).size} pages`);

  await page.goto(`${root}?page=999`);
  check((await text(page, ".apps")).includes("There is no page 999. Last page"), "page 999");
  await page.goto(`${root}?sort=sideways&colour=blue`);
  check((await text(page, ".notice")) === "Not recognised and ignored: sort=sideways, colour=blue.", await text(page, ".notice"));
  await accessible(page, "an address that is not understood");
}

// An app that is removed while its page is open; an exporter that dies and comes back.
async function lifetime(watcher, child, root) {
  await watcher.close();
  const page = await open(root, { base: root, quiet: true });
  const address = await page.locator("table.apps .app").last().evaluate((link) => link.href);
  await page.goto(address);
  const title = await page.title();
  const frozen = async (what, words) => {
    await until(page, what, async () => (await page.locator("#trouble").isVisible()) && (await text(page, "#trouble")).includes(words));
    check(/since \d\d:\d\d:\d\d UTC \(\d+ s\)/.test(await text(page, "#trouble")), `since when? ${await text(page, "#trouble")}`);
    check((await page.title()).startsWith("✕ ") && (await page.getAttribute("link[rel=icon]", "href")).includes("trouble"), `${what}: title and icon`);
    const dimmed = await page.locator("h1").evaluate((title) => getComputedStyle(title).color === getComputedStyle(document.querySelector("footer")).color);
    check(dimmed, `${what}: the page is not dimmed`);
    await accessible(page, what);
  };
  const thawed = (what) => until(page, what, async () => (await page.title()) === title && !(await page.evaluate(() => document.body.classList.contains("frozen"))));
  reload(child, "fewer");
  await frozen("a removed app", "no longer has it");
  reload(child, "good");
  await thawed("the app is back");
  const port = new URL(root).port;
  await new Promise((resolve) => { child.removeAllListeners("exit"); child.on("exit", resolve); child.kill("SIGKILL"); });
  await frozen("a dead exporter", "The exporter does not answer");
  const next = await start(port, "--web.max-requests", "1");
  await thawed("the exporter is back");
  check(/^The exporter restarted at \d\d:\d\d:\d\d UTC\.$/.test(await text(page, "#trouble")), `a restart is told as ${await text(page, "#trouble")}`);
  await page.close();

  // Every page counts against the limit of requests, which is one now; health does not.
  const paths = ["", "config", "metrics-catalogue", "api/v1/status", address.slice(root.length), "metrics"];
  for (const path of paths) {
    await until_(`${path} is refused while another is answered`, async () => {
      const answers = await Promise.all(Array.from({ length: 12 }, () => fetch(next.root + path)));
      await Promise.all(answers.map((answer) => answer.arrayBuffer()));
      return answers.some((answer) => answer.status === 503);
    });
  }
  const health = await Promise.all(Array.from({ length: 12 }, () => fetch(`${next.root}-/healthy`)));
  check(health.every((answer) => answer.status === 200), "health counts against the limit");
}

async function until_(what, holds) {
  for (const began = Date.now(); !(await holds());) if (Date.now() - began > 30000) throw new Error(`waited for: ${what}`);
}

async function whole() {
  try {
    await process_();
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}
export { whole as process };
