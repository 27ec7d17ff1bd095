// Takes a picture of every main page in four views, and compares it with the one kept.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { browser, check, folder } from "./rig.mjs";

const ROOT = "https://pds.example.com";
const KEPT = new URL("goldens/", import.meta.url).pathname;
const NOW = new URL("../../../target/goldens/", import.meta.url).pathname;
const VIEWS = {
  desktop: { width: 1440, height: 900 }, tablet: { width: 820, height: 1180 },
  phone: { width: 390, height: 844 }, dark: { width: 1440, height: 900, scheme: "dark" },
};
// No picture is higher, in pixels of the page.
const MAX_HEIGHT = 2600;
// Pictures are kept at half their size. They are compared in squares of 8 pixels of that, by their mean colour.
const SQUARE = 8;
// Other rounding of the same page makes a difference: a little of every square, or much of hardly any.
const MAX_DIFFERENCE = 14;
const MAX_SHARE = 0.001;
const MAX_BYTES = 1.5e6;

// The same on any machine: fonts, the version of the exporter, and the time that polls took.
const FONTS = '* { font-family: "DejaVu Sans" !important; } code, pre, code *, pre * { font-family: "DejaVu Sans Mono" !important; }';

const { app, failing, pages, now } = JSON.parse(readFileSync(process.env.PAGES, "utf8"));

// A window onto the rendered pages, in which no time passes.
async function rendered(width, height, scheme) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, bypassCSP: true, timezoneId: "UTC", reducedMotion: "reduce" });
  await context.route(`${ROOT}/**`, (route) => {
    const answer = pages[decodeURIComponent(new URL(route.request().url()).pathname)];
    return answer ? route.fulfill({ contentType: answer.type, body: answer.body }) : route.fulfill({ status: 404, body: "" });
  });
  const page = await context.newPage();
  await page.clock.install({ time: now });
  await page.clock.pauseAt(now + 1000);
  return page;
}

async function show(page, path, version) {
  await page.goto(ROOT + path);
  await page.addStyleTag({ content: FONTS });
  await page.evaluate((version) => {
    if (version) document.querySelector(".version").textContent = version;
    document.querySelectorAll("#polls + .scroll td.number").forEach((cell) => (cell.textContent = "12 ms"));
    return document.fonts.ready;
  }, version);
}

// The pictures of the README.
export async function pictures() {
  for (const [name, path, width, height, scheme] of [
    ["overview", "/", 1400, 760, "light"], ["overview-dark", "/", 1400, 760, "dark"],
    ["app", app, 1400, 900, "light"], ["phone", "/", 400, 800, "light"],
  ]) {
    const page = await rendered(width, height, scheme);
    await show(page, path);
    await page.screenshot({ path: `${folder}/${name}.png`, animations: "disabled", caret: "hide" });
    await page.context().close();
  }
}

export async function goldens() {
  const scale = await browser.newPage();
  for (const place of [KEPT, NOW]) mkdirSync(place, { recursive: true });
  let bytes = 0;
  for (const [view, { width, height, scheme = "light" }] of Object.entries(VIEWS)) {
    const page = await rendered(width, height, scheme);
    for (const [name, path] of Object.entries({ overview: "/", app, failing, config: "/config", catalogue: "/metrics-catalogue" })) {
      await show(page, path, "1.2.3");
      const full = await page.evaluate(() => document.documentElement.scrollHeight);
      await page.setViewportSize({ width, height: Math.min(full, MAX_HEIGHT) });
      const png = await page.screenshot({ animations: "disabled", caret: "hide" });
      await page.setViewportSize({ width, height });
      bytes += await compare(scale, `${name}-${view}`, png);
    }
    await page.context().close();
  }
  check(bytes < MAX_BYTES, `the pictures take ${bytes} bytes`);
}

// Gives the size of the picture kept.
async function compare(scale, name, png) {
  const [file, large] = [`${KEPT}${name}.webp`, `${NOW}${name}.png`];
  const url = (kind, data) => `data:image/${kind};base64,${data.toString("base64")}`;
  writeFileSync(large, png);
  let found = existsSync(file) ? await scale.evaluate(difference, [url("webp", readFileSync(file)), url("png", png), SQUARE, MAX_DIFFERENCE]) : {};
  const alike = () => found.same && found.share <= MAX_SHARE;
  // A picture that still fits stays.
  if (process.env.UPDATE === "yes" && !alike()) {
    const small = await scale.evaluate(halved, url("png", png));
    writeFileSync(file, Buffer.from(small.split(",")[1], "base64"));
    found = await scale.evaluate(difference, [small, url("png", png), SQUARE, MAX_DIFFERENCE]);
  }
  check(alike(), `${name}: ${JSON.stringify(found)}; the page as it is now: ${large}; UPDATE_GOLDEN=1 takes the pictures anew`);
  if (!existsSync(file)) return 0;
  return statSync(file).size;
}

// The two run in the browser.
async function halved(url) {
  const image = await createImageBitmap(await (await fetch(url)).blob());
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width >> 1, image.height >> 1];
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/webp", 0.8);
}

async function difference([kept, now, square, most]) {
  const images = await Promise.all([kept, now].map(async (url) => createImageBitmap(await (await fetch(url)).blob())));
  const [width, height] = [images[0].width, images[0].height];
  const size = images.map((image, at) => `${at ? image.width >> 1 : image.width}x${at ? image.height >> 1 : image.height}`);
  if (size[0] !== size[1]) return { same: false, size };
  const means = images.map((image) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, width, height);
    const { data } = context.getImageData(0, 0, width, height);
    const means = [];
    for (let top = 0; top + square <= height; top += square) {
      for (let left = 0; left + square <= width; left += square) {
        for (let channel = 0; channel < 3; channel++) {
          let sum = 0;
          for (let y = top; y < top + square; y++) for (let x = left; x < left + square; x++) sum += data[(y * width + x) * 4 + channel];
          means.push(sum / square / square);
        }
      }
    }
    return means;
  });
  let differing = 0;
  let first;
  const columns = Math.floor(width / square);
  for (let at = 0; at < means[0].length; at += 3) {
    // Lossy pictures keep brightness well and colour at half the detail.
    const [red, green, blue] = [0, 1, 2].map((channel) => means[0][at + channel] - means[1][at + channel]);
    const brightness = Math.abs(0.3 * red + 0.6 * green + 0.1 * blue);
    const apart = Math.max(brightness, ...[red, green, blue].map((colour) => Math.abs(colour) / 2));
    if (apart <= most) continue;
    differing++;
    first ??= { x: ((at / 3) % columns) * square * 2, y: Math.floor(at / 3 / columns) * square * 2, apart };
  }
  return { same: true, share: differing / (means[0].length / 3), differing, first };
}
