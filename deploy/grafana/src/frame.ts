// The parts that all dashboards share: variables, links between them, deploy markers, time range.
import {
  AnnotationQueryBuilder,
  type AnnotationQuery,
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  TextBoxVariableBuilder,
  VariableRefresh,
  VariableSort,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { DATASOURCE, type Row, place } from "./panels.js";

/** A variable with the values of a label: one, many, or many with an `All` that includes series without the label. */
export function variable(
  name: string,
  label: string,
  metric: string,
  choice: "one" | "many" | "optional",
): QueryVariableBuilder {
  const builder = new QueryVariableBuilder(name)
    .label(label)
    .datasource(DATASOURCE)
    .query({ query: `label_values(${metric}, ${name})`, refId: name })
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc)
    .multi(choice !== "one")
    .includeAll(choice !== "one");
  if (choice === "one") {
    return builder;
  }
  const all = builder.current({ text: "All", value: "$__all" });
  return choice === "optional" ? all.allValue(".*") : all;
}

/** The labels that identify a release. Links, rules and routes have the same. */
const IDENTITY = ["cluster", "namespace", "job"];

/** The labels by which aggregations and joins keep releases apart, and apps of releases. */
export const BY = IDENTITY.join(", ");
export const BY_APP = `${BY}, project, app`;

/** The chosen releases, as a selector. */
export const RELEASE = IDENTITY.map((label) => `${label}=~"$${label}"`).join(", ");

/** The variables that choose releases. Each offers the values that the variables before it leave. */
export const RELEASES = IDENTITY.map((label, place) => {
  const before = IDENTITY.slice(0, place).map((other) => `${other}=~"$${other}"`);
  const title = label.charAt(0).toUpperCase() + label.slice(1);
  return variable(label, title, `pds_exporter_build_info{${before.join(", ")}}`, "optional");
});

/**
 * The choice of projects and apps: `All` stands for the projects of the chosen teams, or without a choice for all, also those
 * that cannot be polled.
 */
export const PROJECTS = [
  ...RELEASES,
  variable("team", "Team", `{__name__=~"pds_app_info|pds_project_info", ${RELEASE}}`, "optional"),
  variable(
    "project",
    "Project",
    `{__name__=~"pds_app_info|pds_project_info|pds_up", ${RELEASE}, team=~"$team"}`,
    "many",
  ),
];

/** Whether each resource of an app answers its last poll. */
export const appUp = (selector: string) => `pds_up{${selector}, resource=~"app|response_time|run_execution_time"}`;

/** The exporter's external URL, for links to its status pages. */
const STATUS = new TextBoxVariableBuilder("status").label("Status pages").defaultValue("http://localhost:10090");

/** The variables that choose the release of a row. */
export const OF_ROW = IDENTITY.map((label) => `var-${label}=\${__data.fields.${label}}`).join("&");

/** The address of an app's status page. */
export const statusPage = (project: string, app: string) => `\${status}/apps/${project}/${app}`;

/** The dashboard of the app of a row. */
export const APP = `/d/pds-app/pds-app?var-project=\${__data.fields.project}&var-app=\${__value.text}&${OF_ROW}&\${datasource:queryparam}`;

/** The links of a cell with an app. */
export const appLinks = [
  { title: "Dashboard", url: APP },
  { title: "Status page", url: statusPage("${__data.fields.project}", "${__value.text}") },
];

/** Requests or runs per second of counted time. Several exporters of one app count once. */
export const perSecond = (what: "requests" | "runs", selector: string) => {
  const rate = (counter: string) =>
    `sum by (${BY_APP}) (rate(pds_app_${what}${counter}_total{${selector}}[$__rate_interval]))`;
  return `${rate("")} / (${rate("_accounted_seconds")} > 0)`;
};

/** A marker where an expression appears: on all graphs, with a text made of its labels. */
export class Marker extends AnnotationQueryBuilder {
  constructor(
    name: string,
    expr: string,
    private readonly text: string,
  ) {
    super();
    this.name(name).datasource(DATASOURCE).enable(true).iconColor("blue").expr(expr);
  }

  override build(): AnnotationQuery & { titleFormat: string; textFormat: string; step: string } {
    return { ...super.build(), titleFormat: this.internal.name, textFormat: this.text, step: "300s" };
  }
}

/** The newest ready build of an app that was another one five minutes ago. `by` names the labels to show. */
export const newBuild = (selector: string) => {
  const builds = (offset: string) =>
    `max by (${BY}, app, latest_ready_build_id) (pds_app_build_info{${selector}}${offset})`;
  return `${builds("")} unless ${builds(" offset 5m")} and on (${BY}, app) ${builds(" offset 5m")}`;
};

export function dashboard(
  uid: string,
  title: string,
  description: string,
  variables: QueryVariableBuilder[],
  rows: Row[],
  markers: Marker[] = [],
  links: DashboardLinkBuilder[] = [],
): Dashboard {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(["pds"])
    .tooltip(DashboardCursorSync.Crosshair)
    .refresh("1m")
    .time({ from: "now-6h", to: "now" })
    .timezone("browser")
    .link(
      new DashboardLinkBuilder("PDS")
        .type(DashboardLinkType.Dashboards)
        .tags(["pds"])
        .icon("external link")
        .includeVars(true)
        .keepTime(true),
    )
    .withVariable(new DatasourceVariableBuilder("datasource").label("Data source").type("prometheus"))
    .annotations(markers);
  for (const one of [...variables, STATUS]) {
    builder.withVariable(one);
  }
  for (const one of links) {
    builder.link(one);
  }
  return understoodByAll(place(builder, rows).build());
}

/** The dashboard without fields of variables that some versions of Grafana do not have, all at their default. */
function understoodByAll(dashboard: Dashboard): Dashboard {
  const list = dashboard.templating.list?.map((variable) => {
    const { auto, auto_min, auto_count, allowCustomValue, ...rest } = variable as unknown as Record<string, unknown>;
    return rest as unknown as typeof variable;
  });
  return { ...dashboard, templating: { list: list ?? [] } };
}
