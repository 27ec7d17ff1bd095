// Writes the dashboards as JSON into the folder given: `npm run build`.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { app } from "./app.js";
import { exporter } from "./exporter.js";
import { overview } from "./overview.js";

for (const [name, dashboard] of Object.entries({ overview, app, exporter })) {
  writeFileSync(
    join(process.argv[2] ?? "dashboards", `${name}.json`),
    `${JSON.stringify(dashboard, null, 2)}\n`,
  );
}
