// The pictures of the README.
import { folder, open, root } from "./rig.mjs";

async function picture(name, path, options) {
  const page = await open(root + path, options);
  await page.screenshot({ path: `${folder}/${name}.png` });
  return page;
}

export async function pictures() {
  const page = await picture("overview", "", { width: 1400, height: 760 });
  const address = await page.locator("table.apps tbody tr.ok .app").first().getAttribute("href");
  const path = new URL(address, root).href.slice(root.length);
  await picture("overview-dark", "", { width: 1400, height: 760, scheme: "dark" });
  await picture("app", path, { width: 1400, height: 900 });
  await picture("phone", "", { width: 400, height: 800 });
}
