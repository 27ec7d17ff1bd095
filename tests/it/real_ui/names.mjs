// Names that the service gives: long ones, blank ones, and ones that turn the direction of text.
import { accessible, check, faults, names as titles, open, root, until, value } from "./rig.mjs";

const LONG = "W".repeat(300);
const TURNED = "\u202eturned";
const GROUPED = `${root}?group=project`;

export async function names() {
  const page = await open(root);
  const apps = await page.locator("table.apps .app").evaluateAll((links) => links.map((link) => link.href));
  const id = (address) => decodeURIComponent(address.split("/").pop());
  const [long, blank, turned] = apps;
  await page.goto(GROUPED);
  for (const project of [LONG, TURNED]) {
    await faults([
      value("name", JSON.stringify(LONG), { app: id(long) }),
      value("name", '" \\u200b"', { app: id(blank) }),
      value("name", JSON.stringify(TURNED), { app: id(turned) }),
      value("name", JSON.stringify(project), { call: "list_projects" }),
    ]);
    await until(page, "the names", async () => {
      const [shown, groups] = [await titles(page), await page.locator("tr.group").allTextContents()];
      return [LONG, TURNED, id(blank)].every((name) => shown.includes(name)) && groups.every((group) => group.includes(project));
    });
    for (const address of project === LONG ? [GROUPED, long, blank] : [GROUPED, turned]) {
      for (const width of [1440, 768, 400]) await look(address, width);
    }
  }
  await faults([]);
}

async function look(address, width) {
  const page = await open(address, { width });
  const what = `${address.slice(root.length)} at ${width}`;
  const found = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const isSeen = (text) => /[^\s\p{Cf}]/u.test(text);
    const unseen = [...document.querySelectorAll("a, h1")].filter((node) => node.checkVisibility() && !isSeen(node.innerText));
    // Each text that turns and the next one: the last line of the first, and the first line of the second.
    const lines = (node) => { const range = document.createRange(); range.selectNodeContents(node); return [...range.getClientRects()]; };
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (isSeen(walker.currentNode.data) && walker.currentNode.parentElement.checkVisibility()) texts.push(walker.currentNode);
    const turned = texts.flatMap((text, at) => (text.data.includes("\u202e") && texts[at + 1] ? [[text, texts[at + 1]]] : []));
    const moved = turned.filter(([one, next]) => {
      const [before, after] = [lines(one).at(-1), lines(next)[0]];
      return after.left < before.right - 1 && after.top < before.bottom - 1;
    });
    return {
      wide: scrollWidth > clientWidth && `${scrollWidth} of ${clientWidth} pixels`,
      unseen: unseen.map((node) => node.outerHTML.slice(0, 200)),
      turned: turned.length,
      moved: moved.map(([one, next]) => `${next.data} before ${one.parentElement.outerHTML.slice(0, 200)}`),
    };
  });
  check(!found.wide, `${what}: ${found.wide}`);
  check(found.unseen.length === 0, `${what}: cannot be seen: ${found.unseen}`);
  check(found.moved.length === 0, `${what}: reordered: ${found.moved}`);
  check(found.turned > 0 || address !== GROUPED, `${what}: no name turns`);
  if (width === 400) await accessible(page, what);
  await page.context().close();
}
