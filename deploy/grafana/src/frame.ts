// What all dashboards share: variables, links between them, deploy markers, time range.
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
  VariableRefresh,
  VariableSort,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { DATASOURCE, type Row, place } from "./panels.js";

/** A variable filled with the values of a label. */
export function variable(name: string, label: string, metric: string, many: boolean): QueryVariableBuilder {
  const builder = new QueryVariableBuilder(name)
    .label(label)
    .datasource(DATASOURCE)
    .query({ query: `label_values(${metric}, ${name})`, refId: name })
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc)
    .multi(many)
    .includeAll(many);
  return many ? builder.allValue(".*").current({ text: "All", value: "$__all" }) : builder;
}

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
    return { ...super.build(), titleFormat: this.internal.name, textFormat: this.text, step: "60s" };
  }
}

/** The newest ready build of an app that was another one five minutes ago. `by` names the labels to show. */
export const newBuild = (selector: string) => {
  const builds = (offset: string) =>
    `max by (app, latest_ready_build_id) (pds_app_build_info{${selector}}${offset})`;
  return `${builds("")} unless ${builds(" offset 5m")} and on (app) ${builds(" offset 5m")}`;
};

export function dashboard(
  uid: string,
  title: string,
  description: string,
  variables: QueryVariableBuilder[],
  rows: Row[],
  markers: Marker[] = [],
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
  for (const one of variables) {
    builder.withVariable(one);
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
