// The few kinds of panels that the dashboards are made of, with one look for all of them.
import {
  AxisPlacement,
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  type DataQuery,
  FieldColorModeId,
  GraphDrawStyle,
  HeatmapCellLayout,
  LegendDisplayMode,
  MappingType,
  type Panel,
  PercentChangeColorMode,
  type RowPanel,
  ScaleDistribution,
  SortOrder,
  StackingMode,
  type Threshold,
  ThresholdsMode,
  TooltipDisplayMode,
  type ValueMapping,
  VisibilityMode,
  VizOrientation,
} from "@grafana/schema";
import { HeatmapColorMode } from "@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen";
import type { Options as HeatmapOptions } from "@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen";
import type { Options as StatOptions } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { Options as TableOptions } from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type {
  FieldConfig as TimeSeriesField,
  Options as TimeSeriesOptions,
} from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

export const DATASOURCE = { type: "prometheus", uid: "${datasource}" };

/** One expression and how its series are called. */
export interface Series {
  expr: string;
  legend?: string;
}

interface PrometheusQuery extends DataQuery, Record<string, unknown> {
  expr: string;
  legendFormat: string;
  instant: boolean;
  range: boolean;
  format: "time_series" | "table" | "heatmap";
}

interface Common {
  title: string;
  /** What is seen, and what to make of it. */
  description: string;
  unit: string;
  /** Of 24. */
  width: number;
  height: number;
  thresholds?: Threshold[];
  mappings?: ValueMapping[];
  decimals?: number;
}

/** A panel before it has its place. */
export type Draft = Panel & { gridPos: { h: number; w: number; x: number; y: number } };

const GREEN: Threshold[] = [{ color: "green", value: null }];

/** Green, and from `value` on `color`. */
export const from = (value: number, color: string): Threshold[] => [...GREEN, { color, value }];
/** `color`, and from `value` on green. */
export const below = (value: number, color: string): Threshold[] => [
  { color, value: null },
  { color: "green", value },
];

/** Words for single values. */
export const words = (options: Record<string, { text: string; color: string }>): ValueMapping[] => [
  { type: MappingType.ValueToText, options },
];

function query(
  series: Series,
  index: number,
  format: PrometheusQuery["format"],
  instant: boolean,
): PrometheusQuery {
  return {
    refId: String.fromCharCode(65 + index),
    datasource: DATASOURCE,
    expr: series.expr,
    legendFormat: series.legend ?? "__auto",
    instant,
    range: !instant,
    format,
  };
}

function draft(
  type: string,
  common: Common,
  targets: PrometheusQuery[],
  options: object,
  custom?: object,
): Draft {
  const { title, description, unit, width, height, decimals, thresholds, mappings } = common;
  return {
    type,
    title,
    description,
    datasource: DATASOURCE,
    // Counters move once per accounting step; a rate over less than two of them would read 0 now and then.
    interval: "2m",
    gridPos: { h: height, w: width, x: 0, y: 0 },
    targets,
    options: options as Record<string, unknown>,
    fieldConfig: {
      defaults: {
        unit,
        decimals,
        mappings,
        custom: custom as Record<string, unknown> | undefined,
        color: {
          mode: type === "timeseries" ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds,
        },
        thresholds: { mode: ThresholdsMode.Absolute, steps: thresholds ?? GREEN },
      },
      overrides: [],
    },
  };
}

/** Lines over time. */
export function graph(
  common: Omit<Common, "height"> & { height?: number; stack?: boolean },
  ...series: Series[]
): Draft {
  const options: TimeSeriesOptions = {
    legend: { showLegend: true, displayMode: LegendDisplayMode.List, placement: "bottom", calcs: [] },
    tooltip: { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending },
  };
  const custom: TimeSeriesField = {
    drawStyle: GraphDrawStyle.Line,
    lineWidth: 1,
    fillOpacity: common.stack ? 40 : 8,
    showPoints: VisibilityMode.Never,
    spanNulls: false,
    axisPlacement: AxisPlacement.Auto,
    axisSoftMin: 0,
    ...(common.stack ? { stacking: { mode: StackingMode.Normal, group: "A" } } : {}),
  };
  const targets = series.map((one, index) => query(one, index, "time_series", false));
  return draft("timeseries", { height: 8, ...common }, targets, options, custom);
}

/** One number. */
export function stat(common: Omit<Common, "height"> & { name?: boolean }, ...series: Series[]): Draft {
  const options: StatOptions = {
    colorMode: common.thresholds || common.mappings ? BigValueColorMode.Background : BigValueColorMode.Value,
    graphMode: BigValueGraphMode.None,
    justifyMode: BigValueJustifyMode.Auto,
    orientation: VizOrientation.Auto,
    percentChangeColorMode: PercentChangeColorMode.Standard,
    reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
    showPercentChange: false,
    textMode: common.name ? BigValueTextMode.Name : BigValueTextMode.Auto,
    wideLayout: true,
  };
  const targets = series.map((one, index) => query(one, index, "time_series", true));
  return draft("stat", { height: 4, ...common }, targets, options);
}

/** Buckets over time. */
export function heatmap(common: Omit<Common, "height">, series: Series): Draft {
  const options: HeatmapOptions = {
    calculate: false,
    cellGap: 1,
    color: {
      mode: HeatmapColorMode.Scheme,
      scheme: "Oranges",
      fill: "dark-orange",
      exponent: 0.5,
      steps: 64,
      reverse: false,
    },
    exemplars: { color: "rgba(255,0,255,0.7)" },
    filterValues: { le: 1e-9 },
    legend: { show: true },
    rowsFrame: { layout: HeatmapCellLayout.auto },
    showValue: VisibilityMode.Never,
    tooltip: { mode: TooltipDisplayMode.Single, showColorScale: true, yHistogram: true },
    yAxis: { unit: "s", axisPlacement: AxisPlacement.Left },
  };
  const custom = { scaleDistribution: { type: ScaleDistribution.Linear } };
  return draft("heatmap", { height: 8, ...common }, [query(series, 0, "heatmap", false)], options, custom);
}

/** A column of a table: the expression's value, or where `field` is given one of its labels. */
export interface Column extends Series {
  name: string;
  unit?: string;
  thresholds?: Threshold[];
}

/** One row per value of `by`, one column per expression, joined. */
export function table(common: Omit<Common, "unit">, by: string, columns: Column[], link?: string): Draft {
  const options: TableOptions = { showHeader: true, frameIndex: 0 };
  const targets = columns.map((column, index) => query(column, index, "table", true));
  const panel = draft("table", { unit: "short", ...common }, targets, options, { filterable: true });
  const letter = (index: number) => String.fromCharCode(65 + index);
  panel.transformations = [
    { id: "joinByField", options: { byField: by, mode: "outer" } },
    {
      id: "organize",
      options: {
        excludeByName: Object.fromEntries(
          columns.flatMap((_, i) => [
            ["Time", true],
            [`Time ${i + 1}`, true],
          ]),
        ),
        renameByName: Object.fromEntries(columns.map((column, i) => [`Value #${letter(i)}`, column.name])),
      },
    },
  ];
  const overrides = columns.map((column) => ({
    matcher: { id: "byName", options: column.name },
    properties: [
      ...(column.unit ? [{ id: "unit", value: column.unit }] : []),
      ...(column.thresholds
        ? [
            { id: "thresholds", value: { mode: ThresholdsMode.Absolute, steps: column.thresholds } },
            { id: "custom.cellOptions", value: { type: "color-background" } },
          ]
        : []),
    ],
  }));
  const links = link
    ? [
        {
          matcher: { id: "byName", options: by },
          properties: [{ id: "links", value: [{ title: "Details", url: link }] }],
        },
      ]
    : [];
  panel.fieldConfig = { defaults: panel.fieldConfig?.defaults ?? {}, overrides: [...overrides, ...links] };
  return panel;
}

/** Rows with a title, their panels set from left to right and wrapped at 24 columns. */
export function layout(rows: [string, Draft[]][]): (Panel | RowPanel)[] {
  const placed: (Panel | RowPanel)[] = [];
  let [id, y] = [0, 0];
  for (const [title, panels] of rows) {
    placed.push({
      type: "row",
      id: ++id,
      title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: 24, x: 0, y: y++ },
    });
    let [x, height] = [0, 0];
    for (const panel of panels) {
      if (x + panel.gridPos.w > 24) {
        [x, y, height] = [0, y + height, 0];
      }
      placed.push({ ...panel, id: ++id, gridPos: { ...panel.gridPos, x, y } });
      x += panel.gridPos.w;
      height = Math.max(height, panel.gridPos.h);
    }
    y += height;
  }
  return placed;
}
