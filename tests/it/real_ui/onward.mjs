// From what is wrong to what to do: causes, queries to copy, links to other programs, changes.
import { accessible, check, faults, open, root, status, text, until, value } from "./rig.mjs";

export async function onward() {
  const page = await open(root, { permissions: ["clipboard-read", "clipboard-write"] });
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const app = await page.locator("table.apps .app").evaluateAll((links) => links.find((link) => link.textContent === "Embeddings").href);
  const [project, id] = app.split("/").slice(-2).map(decodeURIComponent);
  const selector = `project="${project}",app="${id}"`;
  await page.goto(app);

  // The query of each number, to copy.
  await page.click('button[aria-label^="Copy: 95th percentile of response times"]');
  check((await copied()) === `pds_app_response_time_seconds{${selector},percentile="p95"}`, `copied: ${await copied()}`);
  check((await text(page, 'button[aria-label^="Copy: 95th percentile of response times"]')) === "Copied", "copying is not told");

  // Links to the programs that the configuration names.
  const links = Object.fromEntries(await page.locator(".open-in a").evaluateAll((links) => links.map((link) => [link.textContent, link.href])));
  const encoded = encodeURIComponent(`ALERTS{${selector}}`);
  check(links["Alerts in Prometheus"] === `http://prometheus.example.com/in/graph?g0.expr=${encoded}&g0.tab=1`, JSON.stringify(links));
  check(links.Grafana === `https://grafana.example.com/d/pds-app?var-project=${project}&var-app=${id}`, JSON.stringify(links));
  check(links["The service"] === `https://service.example.com/${project}/apps/${id}`, JSON.stringify(links));
  check((await page.locator('.queries a[href^="http://prometheus.example.com/in/graph?g0.expr="]').count()) > 10, "queries do not open in Prometheus");
  const series = await (await fetch(await page.locator("#queries + p a").evaluate((link) => link.href))).text();
  const lines = series.split("\n").filter((line) => line.startsWith("pds_app_"));
  check(lines.length > 50 && lines.every((line) => line.includes(`app="${id}"`)), `${lines.length} series of the app, or of others`);

  // The page begins with the verdict, its cause and what to do; polls of one outcome are one row.
  const begins = () => page.locator("main > section, main > .facts").first().innerText();
  check((await begins()).includes("Its numbers can be trusted."), `the page begins with ${await begins()}`);
  await faults([status(500, { app: id, call: "response_time" }), value("maxReplicaCount", '"77"', { app: id })]);
  await until(page, "the cause", async () => /response time: the service returns errors \(500\)\. Wait, or report it/s.test(await begins()));
  await until(page, "folded failures", async () => /500[\s\S]*/.test(await text(page, "#polls + .scroll")) && /and \d+ more since/.test(await text(page, "#polls + .scroll")));
  const failures = await page.locator("#polls + .scroll tr:has(.verdict.problem)").count();
  check(failures === 1, `${failures} rows of the same failure`);

  // Problems and polls stand before plots, and a red cell of the overview leads to the failed request.
  const top = (selector) => page.locator(selector).first().evaluate((node) => node.getBoundingClientRect().top + scrollY);
  const order = await Promise.all([".banner", "#resources", "#polls", "#window", ".plots"].map(top));
  check(order.every((at, index) => index === 0 || order[index - 1] < at), `the parts of the page stand at ${order}`);
  const address = page.url();
  await page.goto(root);
  await page.locator("table.apps tr.problem .freshness .problem a").first().click();
  await page.waitForURL(/\/apps\/.*#polls$/);
  const evidence = await text(page, "#polls + .scroll tr:has(.verdict.problem)");
  check(/^\d\d:\d\d:\d\d[\s\S]*response time\s+✕ 500\s+[\d.]+ (µs|ms|s)[\s\S]*GET http\S+ returned 500: an injected fault/.test(evidence), `the failed request: ${evidence}`);
  await page.goto(address);

  // The settings that changed since yesterday.
  await until(page, "the change", async () => (await page.locator("#changes + .scroll tbody tr").count()) > 0);
  check(/max replicas\s+\d+\s+77/.test(await text(page, "#changes + .scroll tbody")), await text(page, "#changes + .scroll tbody"));
  await accessible(page, "an app that fails and has changed");

  // Settings say yes and no, and lead to what they mean.
  const setting = page.locator(".settings tr", { has: page.locator('th a:text-is("auth disabled")') });
  check((await setting.locator(".value").innerText()) === "no", "a switch is not yes or no");
  const link = setting.locator("th a");
  const meaning = await link.getAttribute("title");
  check((await link.getAttribute("href")).endsWith("/metrics-catalogue#pds_app_auth_disabled"), "a setting leads elsewhere");
  check(meaning.length > 20 && !/\b[01] where/.test(meaning), `the meaning is: ${meaning}`);
  check(!/\b[01] where/.test(await page.locator(".settings").textContent()), "settings speak of 0 and 1");
  await faults([]);

  // A query for each family, and the configuration as a file.
  await page.goto(`${root}metrics-catalogue`);
  const families = await page.locator("tr[id^=pds_]").count();
  check(families > 60 && (await page.locator("tr[id^=pds_] .copy:visible").count()) > 20, "families without a query");
  const names = await page.locator("tr[id^=pds_]").evaluateAll((rows) => rows.filter((row) => row.querySelector(`[data-copy="${row.id}"]`)).map((row) => row.id));
  check(names.length === 0, `queries that are only a name: ${names}`);
  await page.click('button[aria-label="Copy: pds_app_requests_total"]');
  const rate = "max by (project, app) (rate(pds_app_requests_total[5m]) / (rate(pds_app_requests_accounted_seconds_total[5m]) > 0))";
  check((await copied()) === rate, `copied: ${await copied()}`);
  await page.goto(`${root}config`);
  const toml = page.locator("details", { hasText: "Values that differ from the defaults, as TOML" });
  check(!(await toml.locator("pre").isVisible()), "the file is unfolded");
  await toml.locator("summary").click();
  await toml.locator("button").click();
  check((await copied()) === (await toml.locator("pre").textContent()), "the copy is not what is shown");
  for (const part of ['[poll]\ninterval = "1s"', '[[projects]]', `id = "${project}"`, "[web]\n"]) check((await copied()).includes(part), `${part} is not in ${await copied()}`);
  check(!/eyJ/.test(await copied()), "a token is copied");
  const projects = page.locator("details[data-key^='projects[']");
  check((await projects.count()) > 0 && !(await projects.first().locator("table").isVisible()), "projects are unfolded");
  await projects.first().locator("summary").click();
  check(await projects.first().locator("table").isVisible(), "projects do not unfold");
  await accessible(page, "an unfolded configuration");
  await page.check("input[name=changed]");
  await page.waitForFunction(() => !document.querySelector(".configuration .origin.default"));
  check((await page.locator(".configuration tr").count()) > 3, "nothing differs from the defaults");
}
