import { accessible, check, names, open, root } from "./rig.mjs";

// The demo as anyone sees it who tries the exporter, every link of it followed once.
export async function demo() {
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
