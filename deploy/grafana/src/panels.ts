// The kinds of panels the dashboards are made of, with one look for all of them.
import {
  AxisPlacement,
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  GraphDrawStyle,
  HeatmapCellLayout,
  LegendDisplayMode,
  LegendPlacement,
  PercentChangeColorMode,
  ReduceDataOptionsBuilder,
  ScaleDistribution,
  ScaleDistributionConfigBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TableSortByFieldStateBuilder,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizOrientation,
  VizTooltipOptionsBuilder,
} from "@grafana/grafana-foundation-sdk/common";
import {
  type DashboardBuilder,
  FieldColorBuilder,
  FieldColorModeId,
  MappingType,
  type Panel,
  RowBuilder,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
} from "@grafana/grafana-foundation-sdk/dashboard";
import * as heat from "@grafana/grafana-foundation-sdk/heatmap";
import { DataqueryBuilder, PromQueryFormat } from "@grafana/grafana-foundation-sdk/prometheus";
import * as statistic from "@grafana/grafana-foundation-sdk/stat";
import * as tables from "@grafana/grafana-foundation-sdk/table";
import * as timeseries from "@grafana/grafana-foundation-sdk/timeseries";

export const DATASOURCE = { type: "prometheus", uid: "${datasource}" };

/** One expression and how its series are called. */
export interface Series {
  expr: string;
  legend?: string;
}

interface Common {
  title: string;
  /** The meaning of the panel, and advice. */
  description: string;
  unit: string;
  /** In columns, of 24. */
  width: number;
  height?: number;
  thresholds?: Threshold[];
  mappings?: ValueMapping[];
  decimals?: number;
}

/** A panel before it has its place. */
export interface Draft {
  build(): Panel;
  id(id: number): this;
}

/** A title and the panels below it. */
export type Row = [string, Draft[]];

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

const letter = (index: number) => String.fromCharCode(65 + index);

function query(series: Series, index: number, format: PromQueryFormat, instant: boolean): DataqueryBuilder {
  const builder = new DataqueryBuilder()
    .refId(letter(index))
    .datasource(DATASOURCE)
    .expr(series.expr)
    .legendFormat(series.legend ?? "__auto")
    .format(format);
  return instant ? builder.instant() : builder.range();
}

type PanelBuilder =
  | timeseries.PanelBuilder
  | statistic.PanelBuilder
  | heat.PanelBuilder
  | tables.PanelBuilder;

/** The fields that all kinds share. */
function draft<B extends PanelBuilder>(builder: B, height: number, common: Common, color: FieldColorModeId): B {
  builder
    .title(common.title)
    .description(common.description)
    .datasource(DATASOURCE)
    // Counters move once per accounting step; a range without two values has no rate.
    .interval("3m")
    .span(common.width)
    .height(common.height ?? height)
    .unit(common.unit)
    .colorScheme(new FieldColorBuilder().mode(color))
    .thresholds(
      new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(common.thresholds ?? GREEN),
    );
  if (common.decimals !== undefined) {
    builder.decimals(common.decimals);
  }
  if (common.mappings) {
    builder.mappings(common.mappings);
  }
  return builder;
}

/** Lines over time. */
export function graph(common: Common & { stack?: boolean }, ...series: Series[]): Draft {
  const builder = draft(new timeseries.PanelBuilder(), 8, common, FieldColorModeId.PaletteClassic)
    .targets(series.map((one, index) => query(one, index, PromQueryFormat.TimeSeries, false)))
    .legend(
      new VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .calcs([]),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .drawStyle(GraphDrawStyle.Line)
    .lineWidth(1)
    .fillOpacity(common.stack ? 40 : 8)
    .showPoints(VisibilityMode.Never)
    .spanNulls(false)
    .axisPlacement(AxisPlacement.Auto)
    .axisSoftMin(0);
  return common.stack
    ? builder.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group("A"))
    : builder;
}

/** One number. */
export function stat(common: Common & { name?: boolean }, ...series: Series[]): Draft {
  const colored = common.thresholds || common.mappings;
  return draft(new statistic.PanelBuilder(), 4, common, FieldColorModeId.Thresholds)
    .targets(series.map((one, index) => query(one, index, PromQueryFormat.TimeSeries, true)))
    .colorMode(colored ? BigValueColorMode.Background : BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.None)
    .justifyMode(BigValueJustifyMode.Auto)
    .orientation(VizOrientation.Auto)
    .percentChangeColorMode(PercentChangeColorMode.Standard)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(["lastNotNull"]).fields("").values(false))
    .showPercentChange(false)
    .textMode(common.name ? BigValueTextMode.Name : BigValueTextMode.Auto)
    .wideLayout(true);
}

/** Buckets over time. */
export function heatmap(common: Common, series: Series): Draft {
  return draft(new heat.PanelBuilder(), 8, common, FieldColorModeId.Thresholds)
    .targets([query(series, 0, PromQueryFormat.Heatmap, false)])
    .calculate(false)
    .cellGap(1)
    .color(
      new heat.HeatmapColorOptionsBuilder()
        .mode(heat.HeatmapColorMode.Scheme)
        .scheme("Oranges")
        .fill("dark-orange")
        .exponent(0.5)
        .steps(64)
        .reverse(false),
    )
    .filterValues(new heat.FilterValueRangeBuilder().le(1e-9))
    .showLegend()
    .rowsFrame(new heat.RowsHeatmapOptionsBuilder().layout(HeatmapCellLayout.Auto))
    .showValue(VisibilityMode.Never)
    .mode(TooltipDisplayMode.Single)
    .showColorScale(true)
    .showYHistogram()
    .yAxis(new heat.YAxisConfigBuilder().unit("s").axisPlacement(AxisPlacement.Left))
    .scaleDistribution(new ScaleDistributionConfigBuilder().type(ScaleDistribution.Linear));
}

/** A column of a table: the value of its expression. */
export interface Column extends Series {
  name: string;
  unit?: string;
  thresholds?: Threshold[];
  /** Labels of its series that are shown in place of the value. */
  labels?: string[];
}

/**
 * One row per combination of the labels `by`, one column per expression, sorted. `links` are titles and addresses for a cell
 * of the last label.
 */
export function table(
  common: Omit<Common, "unit">,
  by: string[],
  columns: Column[],
  links: { title: string; url: string }[],
  sorted: { displayName: string; desc: boolean }[] = [],
): Draft {
  // As Grafana calls it.
  const value = (index: number) => (columns.length > 1 ? `Value #${letter(index)}` : "Value");
  const names = columns.map((column, index) => [value(index), column.name]);
  const shown = columns.flatMap((column, index) => column.labels ?? [value(index)]);
  const hidden = columns.flatMap((column, index) => (column.labels ? [value(index)] : []));
  const builder = draft(
    new tables.PanelBuilder(),
    8,
    { unit: "short", ...common },
    FieldColorModeId.Thresholds,
  )
    .targets(columns.map((column, index) => query(column, index, PromQueryFormat.Table, true)))
    .filterable(true)
    .showHeader(true)
    .transformations([
      // Rows of the same labels become one.
      { id: "merge", options: {} },
      {
        id: "organize",
        options: {
          excludeByName: Object.fromEntries(["Time", ...hidden].map((name) => [name, true])),
          indexByName: Object.fromEntries([...by, ...shown].map((name, index) => [name, index])),
          renameByName: Object.fromEntries(names),
        },
      },
    ]);
  if (sorted.length > 0) {
    builder.sortBy(
      sorted.map(({ displayName, desc }) => new TableSortByFieldStateBuilder().displayName(displayName).desc(desc)),
    );
  }
  for (const column of columns) {
    builder.overrideByName(column.name, [
      ...(column.unit ? [{ id: "unit", value: column.unit }] : []),
      ...(column.thresholds
        ? [
            { id: "thresholds", value: { mode: ThresholdsMode.Absolute, steps: column.thresholds } },
            { id: "custom.cellOptions", value: { type: "color-background" } },
          ]
        : []),
    ]);
  }
  return builder.overrideByName(by.at(-1) ?? "", [{ id: "links", value: links }]);
}

/** The series of an expression by these labels, one row each. */
export function list(common: Omit<Common, "unit">, expr: string, labels: string[], link?: string): Draft {
  const builder = draft(new tables.PanelBuilder(), 8, { unit: "short", ...common }, FieldColorModeId.Thresholds)
    .targets([query({ expr }, 0, PromQueryFormat.Table, true)])
    .showHeader(true)
    .transformations([
      {
        id: "organize",
        options: {
          excludeByName: { Time: true, Value: true },
          indexByName: Object.fromEntries(labels.map((label, index) => [label, index])),
        },
      },
    ]);
  return link ? builder.overrideByName("app", [{ id: "links", value: [{ title: "Details", url: link }] }]) : builder;
}

/** Puts the rows below each other, their panels from left to right. */
export function place(builder: DashboardBuilder, rows: Row[]): DashboardBuilder {
  let id = 0;
  for (const [title, panels] of rows) {
    builder.withRow(new RowBuilder(title).id(++id));
    for (const panel of panels) {
      builder.withPanel(panel.id(++id));
    }
  }
  return builder;
}
