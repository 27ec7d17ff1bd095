// Plots, looked at as a reader does: axes, lines, marks, the crosshair, and the same without scripts.
import { accessible, check, faults, open, root, status, text, until, value } from "./rig.mjs";

const figure = (page, title) => page.locator("figure").filter({ has: page.locator("h3", { hasText: new RegExp(`^${title}$`) }) });
const OVER_TIME = ["Response time percentiles", "Request rate", "Failed polls"];

export async function plots() {
  const page = await open(root);

  // Sparklines stand in one column, whatever the numbers beside them.
  for (const name of ["p95", "Requests/min"]) {
    const sparklines = page.locator(`td[data-name="${name}"] .sparkline`);
    // Each takes two samples.
    await until(page, `sparklines of ${name}`, async () => (await sparklines.count()) > 3);
    const lefts = await sparklines.evaluateAll((plots) => plots.map((plot) => Math.round(plot.getBoundingClientRect().left)));
    check(new Set(lefts).size === 1, `sparklines of ${name} begin at ${lefts}`);
  }

  // A new build and failed polls of one app.
  const app = await page.locator("table.apps .app").evaluateAll((links) => links.find((link) => link.textContent === "Search ranker").href);
  const id = decodeURIComponent(app.split("/").pop());
  await page.goto(app);
  await faults([value("latestReadyBuildId", '"b-brand-new"', { app: id }), status(500, { app: id, call: "response_time" })]);
  await until(page, "failed polls and a new build", async () => /new build/.test(await text(page, "main")) && (await text(page, ".banner")).includes("returns errors"));
  await faults([value("latestReadyBuildId", '"b-brand-new"', { app: id })]);
  await until(page, "an app that is well", async () => (await text(page, ".banner")).includes("can be trusted"));
  const titles = await page.locator("figure h3").allTextContents();
  check(titles.join() === ["Response times", "Run execution times", ...OVER_TIME].join(), `the plots are ${titles}`);
  for (const title of OVER_TIME) {
    // A step of 15 s is drawn once there is another.
    await until(page, `a mark of the build in ${title}`, async () =>
      (await figure(page, title).locator(".legend .deploy").count()) === 1);
  }
  // Failures may fall into every step so far. The next step has none.
  await until(page, "steps with and without failed polls", async () => {
    const failed = await figure(page, "Failed polls").locator("tbody td:first-of-type").allTextContents();
    return failed.some((count) => Number(count) > 0) && failed.some((count) => count === "0");
  });
  check((await text(page, "#hours ~ .sub")).startsWith("Memory holds six hours in steps of 15 s"), "what memory holds is not said");

  await axes(page);
  check((await text(page, ".timeline")).includes("new build: b-brand-new"), "the timeline has no build");

  // The range, which the address keeps.
  for (const range of ["30m", "2h", "6h"]) {
    await Promise.all([page.waitForNavigation(), page.click(`.range a:text-is("${range}")`)]);
    check(page.url().includes(`range=${range}`) && (await text(page, ".range [aria-current]")) === range, `the range ${range}`);
    await axes(page);
  }
  await page.goto(`${app}?range=9h`);
  check((await text(page, ".notice")).includes("Not recognised and ignored: range=9h"), "a range that there is not");
  await accessible(page, "a range that there is not");
  await page.goto(app);
  await crosshair(page);
  await idle(page);
  await withoutScripts(app);
}

// Times that people count in, units that they use, and nothing smaller than 12 pixels.
async function axes(page) {
  for (const svg of await page.locator("svg.plot").all()) {
    const label = await svg.getAttribute("aria-label");
    const words = await svg.locator("text").allTextContents();
    check(!words.some((word) => /e-?\d|NaN|inf/.test(word)), `${label}: ${words}`);
    const times = words.map((word) => word.trim()).filter((word) => /^\d\d:\d\d(:\d\d)?$/.test(word));
    const seconds = times.map((time) => time.split(":").reduce((sum, part) => sum * 60 + Number(part), 0) * (time.length === 5 ? 60 : 1));
    // Midnight may lie between them.
    const step = seconds.length > 1 ? (seconds[1] - seconds[0] + 86_400) % 86_400 : 5;
    check(seconds.length <= 6 && seconds.every((second) => second % step === 0), `${label}: times ${times}`);
    const rest = words.map((word) => word.trim()).filter((word) => /^[\d.,]+ /.test(word));
    check(rest.every((word) => /^[\d.,]+ (µs|ms|s|min|h|%)$/.test(word)), `${label}: units ${rest}`);
  }
  const small = await page.locator("svg.plot text").evaluateAll((texts) => texts.map((node) => {
    const svg = node.ownerSVGElement;
    return (svg.getBoundingClientRect().width / svg.viewBox.baseVal.width) * parseFloat(getComputedStyle(node).fontSize);
  }).filter((size) => size < 11.99));
  check(small.length === 0, `text of ${small} pixels`);
  const over = await page.locator("svg.plot").evaluateAll((plots) => plots.flatMap((plot) => {
    const boxes = [...plot.querySelectorAll("text")].map((node) => [node.textContent, node.getBoundingClientRect()]);
    return boxes.flatMap(([one, a], index) => boxes.slice(index + 1).filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom).map(([other]) => `${one} and ${other}`));
  }));
  check(over.length === 0, `labels run over each other: ${over}`);
}

// The same values under the pointer, under the arrow keys and in the table.
async function crosshair(page) {
  const rate = figure(page, "Request rate");
  const chart = rate.locator(".chart");
  await chart.scrollIntoViewIfNeeded();
  await chart.focus();
  await page.keyboard.press("Home");
  const first = await rate.locator(".readout").innerText();
  const row = await rate.locator("tr[data-x]").first().evaluate((row) => [...row.children].map((cell) => cell.textContent));
  check(first === `time ${row[0]} · requests / min ${row[1]}`, `by keyboard: ${first}, in the table: ${row}`);
  check((await chart.locator("line.cross").getAttribute("x1")) === (await rate.locator("tr[data-x]").first().getAttribute("data-x")), "the line stands elsewhere");
  const box = await chart.locator("svg").boundingBox();
  await page.mouse.move(box.x + box.width * 0.99, box.y + box.height / 2);
  const last = await rate.locator("tr[data-x]").last().evaluate((row) => row.children[0].textContent);
  check((await rate.locator(".readout").innerText()).startsWith(`time ${last} ·`), "under the pointer stands another time");
  await page.mouse.move(1, 1);
}

// An app without a single request: zero is written as zero, and is not drawn as a curve.
async function idle(page) {
  await page.goto(root);
  await Promise.all([page.waitForNavigation(), page.click('table.apps .app:text-is("Canary")')]);
  const instead = await page.locator("p.none").filter({ hasText: "Response times" }).first().innerText();
  check(instead.includes("No requests in the last 5m."), "an idle app has a curve");
  const drawn = await figure(page, "Request rate").locator("svg text").allTextContents();
  check(drawn.map((word) => word.trim()).includes("0") && !drawn.some((word) => /e-/.test(word)), `zeros are drawn as ${drawn}`);
  await accessible(page, "an idle app");
}

// One answer of the exporter, read with and without scripts.
async function withoutScripts(address) {
  const body = await (await fetch(address)).text();
  const plots = [];
  for (const scripts of [true, false]) {
    const page = await open(`${root}config`, { scripts });
    await page.route(address, (route) => route.fulfill({ contentType: "text/html", body }));
    await page.goto(address);
    plots.push(await page.locator("svg.plot, svg.sparkline").evaluateAll((plots) => plots.map((plot) => plot.outerHTML)));
    check((await page.locator("figure details").count()) === 5, "no tables without scripts");
    await page.close();
  }
  check(plots[0].length === 5 && JSON.stringify(plots[0]) === JSON.stringify(plots[1]), "without scripts the plots are others");
}
