// Alerts over time: their counts as columns, and where a count of nothing means that nothing is known.
import type { JSX } from "preact";
import type { Point, Series } from "../charts.ts";
import { askNow } from "../draft.ts";
import type { Rows, Seen } from "../look.ts";
import { local, OLD_S } from "../times.ts";
import type { Bucket, TrendSummary } from "../tool_rows.ts";
import { Columns } from "./chart.tsx";

const STACK: ["informational" | "low" | "medium" | "high", string][] = [
  ["informational", "Informational"],
  ["low", "Low"],
  ["medium", "Medium"],
  ["high", "High"],
];
const HOURS: Record<string, number> = { "1h": 1, "6h": 6, "1d": 24, "7d": 168 };

export type TrendSeen = Seen<Rows<Bucket, TrendSummary>>;

export function trendOf({ result, at }: TrendSeen): { series: Series[]; points: Point[] } {
  const { interval } = result.summary;
  const table = { oldest: result.coverage.table_oldest, newest: result.coverage.table_newest, at };
  return {
    series: STACK.map(([tone, name]) => ({ tone, name })),
    points: result.rows.map((bucket) => {
      const unknown = unknownOf(bucket, interval, table);
      const full = local(bucket.time) ?? "not known";
      return {
        label: interval === "1d" || interval === "7d" ? full.slice(5, 10) : `${full.slice(5, 10)} ${full.slice(11)}`,
        full,
        values: STACK.map(([tone]) => bucket[tone]),
        ...(unknown === null ? {} : { unknown }),
      };
    }),
  };
}

export function AlertTrend({ found }: { found: TrendSeen }): JSX.Element {
  const drawn = trendOf(found);
  const { table_oldest: oldest, table_newest: newest } = found.result.coverage;
  const holds = (unknown: string): boolean => drawn.points.some((point) => point.unknown === unknown);
  return (
    <Columns
      title="Alerts over time"
      of="From"
      unit="Alerts"
      onPick={(from, to) => askNow(`Show the alerts${least(found)} from ${from} to ${to ?? "now"}`)}
      {...drawn}
      note={
        <p class="label">
          {oldest !== null && holds("not kept")
            ? `Hatched at the beginning: nothing is kept from before ${local(oldest)}, so it is not known. `
            : ""}
          {newest === null
            ? ""
            : holds("none came")
              ? `Hatched at the end: nothing has come since ${local(newest)}. Whether it was quiet is not known.`
              : `The newest alert here is of ${local(newest)}.`}
        </p>
      }
    />
  );
}

/** The least severity that was counted, in words. */
function least({ arguments: given }: TrendSeen): string {
  const severity = given.min_severity;
  return severity === undefined || severity === "" ? "" : ` of at least ${severity} severity`;
}

/** Why a count of nothing is no zero: no rows of that time are kept any more, or none have come for so long that they
 * may not arrive. Null where it is one. */
function unknownOf(
  bucket: Bucket,
  interval: string,
  table: { oldest: string | null; newest: string | null; at: number },
): string | null {
  const begin = Date.parse(bucket.time);
  const end = begin + (HOURS[interval] ?? 1) * 3_600_000;
  if (bucket.count > 0) {
    return null;
  }
  if (table.oldest !== null && end <= Date.parse(table.oldest)) {
    return "not kept";
  }
  const newest = table.newest === null ? Number.NaN : Date.parse(table.newest);
  return table.at - newest > OLD_S * 1_000 && begin > newest ? "none came" : null;
}
