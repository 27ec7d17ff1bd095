// What all dashboards share: variables, links between them, time range.
import {
  type Dashboard,
  DashboardCursorSync,
  type Panel,
  type RowPanel,
  type VariableModel,
  VariableRefresh,
  VariableSort,
} from "@grafana/schema";
import { DATASOURCE } from "./panels.js";

const datasource: VariableModel = {
  type: "datasource",
  name: "datasource",
  label: "Data source",
  query: "prometheus",
};

/** A variable filled with the values of a label. */
export function variable(name: string, label: string, metric: string, many: boolean): VariableModel {
  return {
    type: "query",
    name,
    label,
    datasource: DATASOURCE,
    query: { query: `label_values(${metric}, ${name})`, refId: name },
    refresh: VariableRefresh.onTimeRangeChanged,
    sort: VariableSort.naturalAsc,
    multi: many,
    includeAll: many,
    ...(many ? { allValue: ".*", current: { text: "All", value: "$__all" } } : {}),
  };
}

export function dashboard(
  uid: string,
  title: string,
  description: string,
  variables: VariableModel[],
  panels: (Panel | RowPanel)[],
): Dashboard {
  return {
    uid,
    title,
    description,
    tags: ["pds"],
    schemaVersion: 42,
    editable: true,
    graphTooltip: DashboardCursorSync.Crosshair,
    refresh: "1m",
    time: { from: "now-6h", to: "now" },
    timezone: "browser",
    links: [
      {
        type: "dashboards",
        title: "PDS",
        tags: ["pds"],
        icon: "external link",
        tooltip: "",
        asDropdown: false,
        includeVars: true,
        keepTime: true,
        targetBlank: false,
      },
    ],
    annotations: { list: [] },
    templating: { list: [datasource, ...variables] },
    panels,
  };
}
