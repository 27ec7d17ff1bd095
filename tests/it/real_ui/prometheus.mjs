// From the page of an app into a real Prometheus: its alerts, and the result of a query.
import { check, open, root, text, until } from "./rig.mjs";

const pages = process.env.PAGES === "yes";

// Debian's 2.42 has the classic pages. Its 3.5 is built without any: what can be seen of it is where it sends the browser,
// which keeps the query (`g0.tab` is still decoded there, says web/ui/mantine-ui of Prometheus), and what that query gives.
async function result(page) {
  const address = new URL(page.url());
  const expression = address.searchParams.get("g0.expr");
  if (pages) return { expression: await page.inputValue("textarea, .cm-content"), rows: await page.locator(".console_table td.promql-metric, #console0 td:first-child, .data-table td:first-child").allInnerTexts() };
  check(address.pathname === "/query", `Prometheus 3 leads to ${address}`);
  const answer = await (await fetch(`${address.origin}/api/v1/query?query=${encodeURIComponent(expression)}`)).json();
  return { expression, rows: answer.data.result.map((row) => JSON.stringify(row.metric)) };
}

export async function prometheus() {
  const page = await open(root, { quiet: true, base: "http://127.0.0.1:" });
  const app = await page.locator("table.apps .app").first().evaluate((link) => link.href);
  const [project, id] = app.split("/").slice(-2).map(decodeURIComponent);
  await page.goto(app);
  await until(page, "the link", async () => (await page.locator(".open-in a").count()) === 1);
  page.removeAllListeners("pageerror");
  for (const [link, expression, part, tab] of [
    [".open-in a", `ALERTS{project="${project}",app="${id}"}`, "AnAppIsPolled", "1"],
    ['a[aria-label^="Open in Prometheus: Seconds since the last successful poll"]', `time() - pds_last_success_timestamp_seconds{project="${project}",app="${id}"}`, "response_time", "0"],
  ]) {
    await page.goto(app);
    await Promise.all([page.waitForNavigation(), page.click(link)]);
    check(new URL(page.url()).searchParams.get("g0.tab") === tab, `${page.url()} shows another tab`);
    if (tab === "1" && pages) await page.waitForFunction(() => document.body.innerText.includes("alertstate"));
    const found = await result(page);
    check(found.expression === expression, `${link} asks for ${found.expression}`);
    if (tab === "0" && pages) {
      await page.waitForSelector(".rickshaw_graph svg path", { state: "attached" });
      check((await text(page, ".legend, .rickshaw_legend")).includes(part), "nothing is drawn");
    } else {
      check(found.rows.length > 0 && found.rows.every((row) => row.includes(id)) && found.rows.some((row) => row.includes(part)), `${expression} gives ${found.rows}`);
    }
  }
}
