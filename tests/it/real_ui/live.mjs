import { check, names, open, root } from "./rig.mjs";

// A page that is left open: it stays what the reader made of it, and says when it is no longer up to date.
export async function live() {
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
  // A poll may change the share meanwhile.
  const threshold = async () => (await readout()).split(" · ")[0];
  const read = await threshold();
  await again();
  check((await threshold()) === read, "an update takes the crosshair away");
  check(await chart.evaluate((node) => node === document.activeElement), "an update takes the focus from a plot");
  check((await chart.locator("line.cross").count()) === 1, "an update takes the line away");
  await page.keyboard.press("Escape");
  check((await page.locator("figure .readout").first().isHidden()), "Escape does not end the crosshair");

  // Whatever answers in the page's place freezes it, with a word and a sign in the title; it thaws by itself.
  const troubles = [
    [(route) => route.abort(), "does not answer"],
    [(route) => route.fulfill({ status: 404, body: "" }), "no longer has it"],
    [(route) => route.fulfill({ status: 401, body: "" }), "requires a password"],
    [(route) => route.fulfill({ status: 503, body: "" }), "too busy"],
    [(route) => route.fulfill({ status: 200, contentType: "text/html", body: "<p>hello" }), "Something other than the exporter answers"],
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
