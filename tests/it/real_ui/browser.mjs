// Looks at the status pages with Chromium and says what is wrong, one complaint a line.
// Arguments: the part to run, the address of the overview, and a folder where the part needs one.
import { browser, complaints, part } from "./rig.mjs";

const parts = {
  pages: () => import("./pages.mjs"),
  live: () => import("./live.mjs"),
  down: () => import("./truth.mjs"),
  truth: () => import("./truth.mjs"),
  process: () => import("./process.mjs"),
  plots: () => import("./plots.mjs"),
  names: () => import("./names.mjs"),
  onward: () => import("./onward.mjs"),
  prometheus: () => import("./prometheus.mjs"),
  demo: () => import("./demo.mjs"),
  goldens: () => import("./goldens.mjs"),
  pictures: () => import("./goldens.mjs"),
};

try {
  await (await parts[part]())[part]();
} catch (error) {
  complaints.push(String(error.stack || error));
}
await browser.close();
console.log(complaints.join("\n"));
process.exit(complaints.length ? 1 : 0);
