// The pages say all that is wrong, and nothing else.
import { accessible, check, open, root, text, until } from "./rig.mjs";

const status = async (address = root) => (await fetch(`${address}api/v1/status`)).json();

// The service is gone.
export async function down() {
  const page = await open(root);
  const says = await text(page, ".banner");
  check(/Nothing listens at the service.s address \(127\.0\.0\.1:\d+\) since \d\d:\d\d UTC: 8 apps and 3 projects \(\d+ s ago\)/.test(says), `the banner says: ${says}`);
  await accessible(page, "down");
}

// Everything that the verdict claims to count, all at once; and what only an exporter of its own can have.
export async function truth() {
  const claimed = [
    ["config_refused", /reload of the configuration was refused/], ["web_config_refused", /web configuration/],
    ["state_not_written", /state file cannot be written/], ["token_expired", /expired at/], ["panicked", /panicked/],
    ["unexpected_values", /response_time\.percentiles/], ["service_error", /^The service returns errors \(500\) since .*: 8 apps and 3 projects$/],
    ["app_status", /status is an error: [^ ]+$/],
  ];
  const page = await open(root);
  // The expectations that are not met yet: apps and projects are polled one after another.
  let missing;
  const { verdict } = await until(page, () => `the reasons ${missing}`, async () => {
    const { summary } = await status();
    missing = claimed.filter(([code, words]) => !summary.reasons.some((reason) => reason.code === code && words.test(reason.text)));
    return missing.length === 0 && summary;
  });
  check(verdict === "problem", `the verdict is ${verdict}`);

  // The page has the same reasons as the JSON, as links, each with what to do.
  check(/^(Some numbers|The numbers of all \d+ apps) cannot be trusted/.test(await text(page, ".banner p")), "the first sentence");
  let shown;
  const reasons = await until(page, () => `the reasons of the JSON: ${JSON.stringify(shown)}`, async () => {
    shown = await page.locator(".banner .reasons li").evaluateAll((lines) => lines.map((line) => ({
      text: line.querySelector("a").textContent, link: line.querySelector("a").getAttribute("href"), remedy: line.querySelector(".action").textContent,
    })));
    const { reasons } = (await status()).summary;
    const same = ({ text, link, remedy }) => reasons.some((reason) => reason.text === text && reason.link === link && reason.remedy === remedy);
    return shown.every(same) && reasons;
  });
  check(shown.length === reasons.length, `${shown.length} of ${reasons.length} reasons`);
  for (const { text, remedy } of shown) check(remedy.endsWith("."), `what to do of ${text}: ${remedy}`);
  await accessible(page, "every reason");
  for (const link of new Set(reasons.map((reason) => reason.link))) {
    await page.goto(new URL(link, root).href);
    check((await page.locator("h1").count()) === 1, `${link} leads nowhere`);
  }
  await page.goto(new URL(reasons.find((reason) => reason.code === "app_status").link, root).href);
  check((await page.locator("table.apps tbody .app").count()) === 1, "the link of a reason shows other apps too");

  // A token that expired three days ago, and the last reload, are facts of their own.
  await page.goto(root);
  const facts = await text(page, ".facts");
  for (const fact of ["expired 3 d ago", "last reload refused", "the state file cannot be written"]) check(facts.includes(fact), `${fact} is not in ${facts}`);

  // Polls that begin late; no apps at all; nothing known yet.
  await page.close();
  const [slow, empty, mute] = process.env.OTHERS.split(" ");
  const late = await open(slow, { base: slow });
  await until(late, "polls that begin late", async () => /Polls start late: \d+ (s|min)/.test(await text(late, ".banner")));
  const none = await open(empty, { base: empty });
  check((await text(none, ".banner")).includes("No apps are configured"), "an exporter without apps is called well");
  check((await status(empty)).summary.verdict === "warning", "without apps");
  check((await text(none, "table.apps")).includes("No app is configured. Add one to [[projects]]"), "how to add an app is not said");
  await accessible(none, "no apps");
  const waiting = await open(mute, { base: mute });
  check((await text(waiting, ".banner")).includes("Nothing has been polled yet"), `before the first reply: ${await text(waiting, ".banner")}`);
  const app = await waiting.locator("table.apps .app").first().getAttribute("href");
  for (const address of [mute, new URL(app, mute).href]) {
    await waiting.goto(address);
    check(!/no request|no failures|none fail/i.test(await text(waiting, "body")), `${address} calls nothing known "none"`);
    await accessible(waiting, `${address} before the first reply`);
  }
  check((await text(waiting, "main")).includes("Nothing is known about the last"), "an app of which nothing is known");
}
