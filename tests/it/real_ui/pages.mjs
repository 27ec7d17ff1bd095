// Every page in every size and theme, and what a reader does with it.
import { accessible, check, follow, names, open, root } from "./rig.mjs";

export async function pages() {
  let page = await open(root);
  check((await page.locator(".banner").innerText()).includes("cannot be trusted"), "the banner does not speak of the app that is not there");
  check((await page.locator(".banner .reasons a").count()) > 0, "the verdict has no reasons");
  const all = await names(page);
  check(all.length > 5, `only ${all.length} apps`);

  // Problems come first, on "all apps" too; apps without a value come last, whichever way; names sort as they are shown.
  const grades = ["problem", "warning", "waiting", "ok"];
  const order = async () => (await page.locator("table.apps tbody tr").evaluateAll((rows) => rows.map((row) => row.className))).map((grade) => grades.indexOf(grade));
  const sorted = (list) => list.every((grade, at) => at === 0 || list[at - 1] <= grade);
  check(sorted(await order()) && new Set(await order()).size > 1, `apps stand in the order ${await order()}`);
  await page.goto(`${root}?name=nothing-like-it`);
  await follow(page, "a.clear");
  check(sorted(await order()), "all apps, after a filter, stand in another order");
  for (const reversed of ["", "&reversed=1"]) {
    await page.goto(`${root}?sort=p95${reversed}`);
    const missing = await page.locator('table.apps td[data-name="p95"]').evaluateAll((cells) => cells.map((cell) => (cell.querySelector(".missing") ? 1 : 0)));
    check(missing.includes(1) && missing.includes(0) && sorted(missing), `missing values stand at ${missing}${reversed}`);
    await page.goto(`${root}?sort=app${reversed}`);
    const shown = (await names(page)).map((name) => name.toLowerCase());
    const right = [...shown].sort((one, other) => (one < other ? -1 : 1));
    check(shown.join() === (reversed ? right.reverse() : right).join(), `names stand in the order ${shown}${reversed}`);
  }

  // Chips count what they show; a project is found by its name; the legend names every sign.
  await page.goto(root);
  const chips = await page.locator(".chips a").evaluateAll((chips) => chips.map((chip) => [chip.href, Number(/\d+/.exec(chip.textContent)[0])]));
  for (const [address, count] of chips) {
    await page.goto(address);
    check((await names(page)).length === count, `${address} shows ${(await names(page)).length} apps instead of ${count}`);
  }
  await page.goto(root);
  const picked = await page.locator("#projects-known option").first().evaluate((option) => option.value);
  check(!/^p-/.test(picked), `projects are offered as ${picked}`);
  await page.fill("input[name=project]", picked);
  await follow(page, "form button");
  check((await names(page)).length > 0, `no app of ${picked}`);
  const legend = await page.locator(".freshness-legend").innerText();
  for (const word of ["✓ fresh", "○ waiting", "▲ late", "✕ failing", "✕ stale"]) check(legend.includes(word), `the legend lacks ${word}`);

  // A name of 600 characters takes one line, as any other.
  await page.goto(root);
  const heights = await page.locator("table.apps .app").evaluateAll((links) => links.map((link) => [link.textContent.length, link.getBoundingClientRect().height]));
  const [long, short] = [heights.find(([length]) => length === 600), heights.find(([length]) => length < 20)];
  check(long && long[1] === short[1], `names are ${JSON.stringify(heights)} high`);
  await page.goto(await page.locator("table.apps .app").evaluateAll((links) => links.find((link) => link.textContent.length === 600).href));
  const title = await page.locator("h1").boundingBox();
  check(title.height < 40 && title.width < 1440, `the title is ${JSON.stringify(title)}`);
  check((await page.getAttribute("h1", "title")).length === 600, "the whole name is nowhere");
  await accessible(page, "a long name");
  await page.goto(root);

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

  // A page that is paused shows the ages that its facts had.
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route(address, async (route) => {
    await released;
    await route.continue();
  });
  await page.evaluate(() => {
    document.querySelector("#refreshed time").title = "before";
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.locator("#pause").click();
  release();
  const grown = await page.evaluate(async () => {
    const ages = () => [...document.querySelectorAll("time[data-relative]")].map((time) => time.textContent).join();
    const [shown, now] = [ages(), performance.now.bind(performance)];
    performance.now = () => now() + 3_600_000;
    // Longer than ages stay as they are on a page that is not paused.
    await new Promise((resolve) => setTimeout(resolve, 1200));
    delete performance.now;
    return shown === ages() ? "" : `${shown} became ${ages()}`;
  });
  check(grown === "", grown);
  const refreshed = await page.evaluate(() => document.querySelector("#refreshed time").title !== "before");
  check(!refreshed, "a refresh that was under way changed a page that is paused");
  await page.unroute(address);
  await page.locator("#pause").click();

  // Every page, light and dark, wide and narrow.
  for (const path of ["", "config", "metrics-catalogue", address.slice(root.length)]) {
    for (const [width, scheme] of [[1440, "light"], [1440, "dark"], [1024, "dark"], [768, "light"], [400, "light"], [400, "dark"]]) {
      const page = await open(root + path, { width, scheme });
      const what = `/${path} at ${width} in ${scheme}`;
      await accessible(page, what);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= width, `${what}: ${wide} pixels wide`);
      const small = await page.locator("svg.plot text").evaluateAll((texts) => texts.map((node) => {
        const svg = node.ownerSVGElement;
        return (svg.getBoundingClientRect().width / svg.viewBox.baseVal.width) * parseFloat(getComputedStyle(node).fontSize);
      }).filter((size) => size < 11.99));
      check(small.length === 0, `${what}: text of plots is ${small} pixels`);
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
      check((ground[0] < 64) === (scheme === "dark"), `${what}: the ground is ${ground}`);
      await page.context().close();
    }
  }

  // A phone: four screens at most before the details of an app.
  page = await open(address, { width: 400, height: 800 });
  const above = await page.locator("#resources").evaluate((node) => node.getBoundingClientRect().top + scrollY);
  check(above <= 4 * 800, `${above} pixels before the details of an app`);
  await page.context().close();

  // An unknown value takes a line, and each row of plots reaches from edge to edge.
  page = await open(root, { width: 1440 });
  const unknown = new URL(await page.locator("table.apps tbody tr.problem .app").first().getAttribute("href"), root).href;
  for (const [width, path] of [[1440, unknown], [1440, address], [1900, address], [400, unknown]]) {
    const page = await open(path, { width });
    const lines = await page.locator(".plots > p.none").evaluateAll((lines) => lines.map((line) => line.getBoundingClientRect().height));
    check(lines.every((height) => height < 80) && (path === address || lines.length > 0), `what is unknown is ${lines} high at ${width}`);
    const gaps = await page.locator(".plots").evaluateAll((rows) => rows.map((row) => {
      const edges = [...row.children].map((child) => child.getBoundingClientRect().right);
      return Math.round(row.getBoundingClientRect().right - Math.max(...edges));
    }));
    check(gaps.every((gap) => gap <= 1), `an empty column at ${width}: ${gaps}`);
    await page.context().close();
  }

  // At 1,024 pixels a shadow shows that the table scrolls: nothing covers it but what stands above its end.
  page = await open(root, { width: 1024, height: 700 });
  const hidden = await page.locator(".tall").first().evaluate((box) => {
    const [frame, row] = [box, box.querySelector("tbody tr td:last-child")].map((node) => node.getBoundingClientRect());
    const above = document.elementsFromPoint(frame.left + box.clientWidth - 3, row.top + 5);
    const opaque = above.slice(0, above.indexOf(box)).filter((node) => !/, 0\)$|transparent/.test(getComputedStyle(node).backgroundColor));
    return { beyond: box.scrollWidth - box.clientWidth, shadow: getComputedStyle(box).backgroundImage.split("gradient").length - 1, opaque: opaque.length };
  });
  check(hidden.beyond > 0 && hidden.shadow === 2 && hidden.opaque === 0, `the table does not show that it scrolls: ${JSON.stringify(hidden)}`);
  await page.context().close();

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
