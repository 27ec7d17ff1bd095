// Looks at the status pages with Chromium and says what is wrong, one complaint a line.
// Arguments: the part to run, the address of the overview, the folder for pictures.
import { createRequire } from "node:module";

const require = createRequire(process.env.NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const axe = require("axe-core");

const [part, root, pictures] = process.argv.slice(2);
const complaints = [];
const check = (good, complaint) => good || complaints.push(complaint);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});

// A page that is watched: no error, no dialog, no request to anyone else.
async function open(address, { width = 1440, height = 900, scheme = "light", scripts = true } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, javaScriptEnabled: scripts, timezoneId: "Asia/Kolkata" });
  const page = await context.newPage();
  page.setDefaultTimeout(15000);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(`${address}: console: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`${address}: ${error.message}`));
  page.on("dialog", (dialog) => { complaints.push(`${address}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => check(request.url().startsWith(root), `${address}: asks for ${request.url()}`));
  page.on("response", (response) => check(response.status() < 400, `${response.url()}: ${response.status()}`));
  const answer = await page.goto(address);
  const policy = answer.headers()["content-security-policy"] || "";
  check(policy.includes("default-src 'none'") && !policy.includes("unsafe"), `${address}: policy ${policy}`);
  return page;
}

async function accessible(page, what) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const violation of violations) {
    if (!["serious", "critical"].includes(violation.impact)) continue;
    for (const node of violation.nodes) complaints.push(`${what}: ${violation.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`);
  }
}

// Clicks what leads to another page, and waits for it.
const follow = (page, what) => Promise.all([page.waitForNavigation(), page.click(what)]);
const names = (page) => page.locator("table.apps tbody tr .app").allTextContents();

async function pages() {
  let page = await open(root);
  check((await page.locator(".banner").innerText()).includes("cannot be trusted"), "the banner does not speak of the app that is not there");
  check((await page.locator(".banner .reasons a").count()) > 0, "the verdict has no reasons");
  const all = await names(page);
  check(all.length > 5, `only ${all.length} apps`);

  // Sorting: the slowest first, then the other way round.
  const column = "table.apps thead th:nth-child(5)";
  await follow(page, `${column} a`);
  check((await page.getAttribute(column, "aria-sort")) === "descending", "not sorted by p95");
  const slowest = await names(page);
  await follow(page, `${column} a`);
  check((await page.getAttribute(column, "aria-sort")) === "ascending", "not sorted the other way round");
  check(JSON.stringify(slowest) !== JSON.stringify(await names(page)), "both orders are the same");

  // Filtering, by a name that fits one line.
  const wanted = all.find((name) => /^[\w ]+$/.test(name));
  await page.goto(root);
  await page.fill("input[name=name]", wanted);
  await follow(page, "form button");
  const found = await names(page);
  check(found.length >= 1 && found.length < all.length && found.includes(wanted), `the filter shows ${found}`);
  await page.fill("input[name=name]", process.env.HOSTILE);
  await follow(page, "form button");
  check((await names(page)).join() === process.env.HOSTILE, `the hostile name is not found: ${await names(page)}`);
  check((await page.inputValue("input[name=name]")) === process.env.HOSTILE, "the filter forgets what it was given");

  // The hostile app has a page like any other; the service says that there is none.
  await follow(page, "table.apps .app");
  check((await page.locator("h1").innerText()) === process.env.HOSTILE, "the hostile app has no page");
  await accessible(page, "hostile app");

  // Another app: plots, settings, polls and replies.
  await page.goto(root);
  const link = page.locator("table.apps tbody tr.ok .app").first();
  const address = new URL(await link.getAttribute("href"), root).href;
  await page.goto(address);
  check((await page.locator("svg.plot").count()) >= 2, `${await page.locator("svg.plot").count()} plots`);
  check((await page.locator(".settings td.value").count()) > 20, "no settings");
  check((await page.locator(".settings").innerText()).includes(process.env.HOSTILE), "no configured label");
  check((await page.locator("details.reply").count()) === 3, "no replies");
  await page.locator("details.reply summary").first().click();
  check((await page.locator("details.reply pre").first().innerText()).includes('"hardware"'), "no raw reply");

  // The script refreshes ages on its own.
  check(await page.evaluate(() => !document.querySelector("#pause").hidden), "the script did not run");

  // Every page, light and dark, wide and narrow.
  for (const path of ["", "config", "metrics-catalogue", address.slice(root.length)]) {
    for (const [width, scheme] of [[1440, "light"], [1440, "dark"], [1024, "dark"], [768, "light"], [400, "light"], [400, "dark"]]) {
      const page = await open(root + path, { width, scheme });
      const what = `/${path} at ${width} in ${scheme}`;
      await accessible(page, what);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= width, `${what}: ${wide} pixels wide`);
      const small = await page.locator("svg.plot").evaluateAll((plots) => plots.map((plot) =>
        (plot.getBoundingClientRect().width / plot.viewBox.baseVal.width) * Number(plot.querySelector("text").getAttribute("font-size"))).filter((size) => size < 11.99));
      check(small.length === 0, `${what}: text of plots is ${small} pixels`);
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
      check((ground[0] < 64) === (scheme === "dark"), `${what}: the ground is ${ground}`);
      await page.context().close();
    }
  }

  // The header stays while the apps scroll, and so do their names.
  page = await open(root, { width: 1024, height: 700 });
  const kept = await page.locator(".tall").first().evaluate((box) => {
    box.style.maxHeight = "300px";
    box.scrollTo(200, 200);
    const [frame, head, name] = [box, box.querySelector("thead th"), box.querySelector("tbody th[scope=row]")].map((node) => node.getBoundingClientRect());
    return { header: Math.round(head.top - frame.top), name: Math.round(name.left - frame.left), scrolled: box.scrollTop };
  });
  check(kept.scrolled > 0 && kept.header <= 1 && kept.name <= 1, `header and names scroll away: ${JSON.stringify(kept)}`);
  await page.context().close();

  // A theme and a time zone of one's own stay over pages.
  page = await open(root, { scheme: "light" });
  const dark = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)[0] < 64);
  for (let clicks = 0; clicks < 3 && !(await dark()); clicks++) await page.click("#theme");
  check(await dark(), "the theme does not change");
  await accessible(page, "the dark theme by choice");
  const utc = await page.locator("#refreshed time").innerText();
  await page.click("#times");
  check((await page.locator("#refreshed time").innerText()) !== utc, "the time zone does not change");
  await page.goto(root + "config");
  check(await dark(), "the theme is forgotten");
  check((await page.locator("#zone").innerText()).includes("local"), "the time zone is forgotten");
  await page.context().close();

  // Chips and groups work without scripts; the catalogue and the configuration are searched while typing.
  page = await open(root, { scripts: false });
  await follow(page, ".chips a:nth-child(2)");
  check((await names(page)).length > 0 && (await names(page)).length < all.length, "a chip shows all apps");
  await page.goto(root + "?group=project");
  check((await page.locator("tr.group").count()) > 1, "no groups");
  page = await open(root + "metrics-catalogue");
  const families = await page.locator("tr[id^=pds_]").count();
  await page.keyboard.press("/");
  await page.keyboard.type("skew");
  await page.waitForFunction((before) => document.querySelectorAll("tr[id^=pds_]").length < before, families);
  check((await page.locator("#pds_api_clock_skew_seconds").count()) === 1, "the search finds nothing");
  await page.goto(root + "config");
  const rows = await page.locator(".configuration tr").count();
  await page.check("input[name=changed]");
  await page.waitForFunction((before) => document.querySelectorAll(".configuration tr").length < before, rows);

  // Keyboard: the first stop leads to the content.
  page = await open(root);
  await page.keyboard.press("Tab");
  check((await page.evaluate(() => document.activeElement.textContent)) === "Skip to content", "no way past the header");

  // Without scripts the same works.
  page = await open(root, { scripts: false });
  check((await names(page)).length === all.length, "nothing without scripts");
  await page.check("input[name=problems]");
  await follow(page, "form button");
  check((await names(page)).length < all.length, "no filter without scripts");

  // Refreshing costs nothing while nothing happens, and the secrets are nowhere.
  const status = await page.request.get(root + "api/v1/status");
  check((await status.json()).apps.length === all.length, "the JSON has other apps");
  const configuration = await (await page.request.get(root + "config")).text();
  check(configuration.includes("[redacted]") && !/eyJ[\w-]+\./.test(configuration), "a token is shown");
}

// A page that is left open: it stays what the reader made of it, and says when it is no longer up to date.
async function live() {
  const page = await open(root);
  const again = () => page.evaluate(() => refresh());
  const at = (selector, what, argument) => page.locator(selector).first().evaluate(what, argument);

  // `/` goes to the filter, results follow the keys, and a focused filter does not stop updates.
  await page.keyboard.press("/");
  const wanted = (await names(page))[0];
  await page.keyboard.type(wanted.slice(0, 4));
  await page.waitForFunction(() => location.search.includes("name="));
  const made = await page.getAttribute("#refreshed time", "datetime");
  await page.waitForTimeout(6000);
  await again();
  check((await page.getAttribute("#refreshed time", "datetime")) !== made, "a focused filter stops updates");
  check((await page.inputValue("input[name=name]")) === wanted.slice(0, 4), "the filter loses what was typed");
  check((await page.evaluate(() => document.activeElement.name)) === "name", "the filter loses the focus");
  await page.goto(root);

  // Focus, selection, scroll position, open details and nodes survive an update.
  const app = await page.locator("table.apps tbody tr.ok .app").first().getAttribute("href");
  await page.goto(new URL(app, root).href + "#polls");
  await page.locator("main details summary").first().click();
  await page.locator("h1").evaluate((node) => getSelection().selectAllChildren(node));
  await page.evaluate(() => { scrollTo(0, 300); document.querySelector("h1").dataset.mine = "yes"; });
  const kept = () => page.evaluate(() => ({
    open: document.querySelector("main details").open, selected: String(getSelection()), scroll: scrollY,
    hash: location.hash, focus: document.activeElement.tagName, target: document.querySelector(":target")?.id,
  }));
  const before = JSON.stringify(await kept());
  await again();
  check(JSON.stringify(await kept()) === before, `an update changes ${before} to ${JSON.stringify(await kept())}`);

  // Values under the pointer, and under the crosshair of the arrow keys, which an update does not take away.
  const chart = page.locator(".chart").first();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2);
  const readout = () => page.locator("figure .readout").first().innerText();
  check(/^within .+ · share .+ %$/.test(await readout()), `under the pointer stands ${await readout()}`);
  await page.mouse.move(5, 5);
  check((await page.locator("figure .readout").first().isHidden()), "the values stay when the pointer is gone");
  await chart.focus();
  await page.keyboard.press("End");
  const last = await readout();
  await page.keyboard.press("ArrowLeft");
  check(last.startsWith("within ") && (await readout()) !== last, `the arrow keys lead from ${last} to ${await readout()}`);
  const read = await readout();
  await again();
  check((await readout()) === read, "an update takes the crosshair away");
  check(await chart.evaluate((node) => node === document.activeElement), "an update takes the focus from a plot");
  check((await chart.locator("line.cross").count()) === 1, "an update takes the line away");
  await page.keyboard.press("Escape");
  check((await page.locator("figure .readout").first().isHidden()), "Escape does not end the crosshair");

  // Whatever answers in the page's place freezes it, with a word and a sign in the title; it thaws by itself.
  const troubles = [
    [(route) => route.abort(), "does not answer"],
    [(route) => route.fulfill({ status: 404, body: "" }), "no longer has it"],
    [(route) => route.fulfill({ status: 401, body: "" }), "asks for a password"],
    [(route) => route.fulfill({ status: 503, body: "" }), "too busy"],
    [(route) => route.fulfill({ status: 200, contentType: "text/html", body: "<p>hello" }), "Something else answers"],
  ];
  page.removeAllListeners("console");
  page.removeAllListeners("response");
  for (const [answer, says] of troubles) {
    await page.route("**/*", answer);
    await again();
    const text = await page.locator("#trouble").innerText();
    check(text.includes(says) && /since \d\d:\d\d:\d\d UTC/.test(text), `in trouble (${says}) the page says ${text}`);
    check((await page.title()).startsWith("✕ "), `the title is ${await page.title()}`);
    check((await page.getAttribute("link[rel=icon]", "href")).includes("trouble"), "the icon is as ever");
    check(await page.evaluate(() => document.body.classList.contains("frozen")), "the page is not dimmed");
    await page.unroute("**/*");
    await again();
    check(!(await page.locator("#trouble").isVisible()), `after trouble the page still says ${says}`);
    check(!(await page.title()).startsWith("✕ "), "the title stays in trouble");
  }

  // An exporter that was started again says so.
  await page.route("**/*", async (route) => {
    const answer = await route.fetch();
    const body = (await answer.text()).replace(/data-started="[^"]*"/, 'data-started="2030-01-01T03:04:05Z"');
    await route.fulfill({ response: answer, body });
  });
  await again();
  check((await page.locator("#trouble").innerText()).includes("restarted at 03:04:05 UTC"), "a restart is not said");
}

async function down() {
  const page = await open(root);
  const says = await page.locator(".banner").innerText();
  check(/does not answer since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/.test(says), `the banner says: ${says}`);
  await accessible(page, "down");
}

// The demo as anyone sees it who tries the exporter, every link of it followed once.
async function demo() {
  const page = await open(root);
  await accessible(page, "demo");
  check((await names(page)).length === 8, `the demo has ${await names(page)}`);
  const seen = new Set([root]);
  const paths = [root];
  while (paths.length > 0 && seen.size < 60) {
    await page.goto(paths.pop());
    for (const link of await page.locator("a[href]").evaluateAll((links) => links.map((link) => link.href.split("#")[0]))) {
      check(link.startsWith(root), `${page.url()} leads to ${link}`);
      if (seen.has(link) || !link.startsWith(root) || link.includes("?") || /\/(metrics|status|schema)$/.test(link)) continue;
      seen.add(link);
      paths.push(link);
    }
  }
  check(seen.size >= 11, `only ${[...seen]}`);
}

async function picture(name, path, options) {
  const page = await open(root + path, options);
  await page.screenshot({ path: `${pictures}/${name}.png` });
  return page;
}

async function take() {
  const page = await picture("overview", "", { width: 1400, height: 760 });
  const address = await page.locator("table.apps tbody tr.ok .app").first().getAttribute("href");
  const path = new URL(address, root).href.slice(root.length);
  await picture("overview-dark", "", { width: 1400, height: 760, scheme: "dark" });
  await picture("app", path, { width: 1400, height: 900 });
  await picture("phone", "", { width: 400, height: 800 });
}

try {
  await { pages, live, down, demo, pictures: take }[part]();
} catch (error) {
  complaints.push(String(error.stack || error));
}
await browser.close();
console.log(complaints.join("\n"));
process.exit(complaints.length ? 1 : 0);
