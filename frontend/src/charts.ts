// Which chart the rows of a table are, by their form alone: a trend, a ranking, the parts of a whole, or none. Pure.
import { isSeverity } from "./severities.ts";
import type { Evidence, Table } from "./wire.ts";

export interface Series {
  name: string;
  /** A severity in small letters, or nothing. */
  tone: string;
}

/** One place on the axis with a value for each series. */
export interface Point {
  label: string;
  /** The label as a table has it. */
  full: string;
  values: number[];
  /** How much of the whole it is, where that is told. */
  percent?: number;
  /** Why nothing is known of it, where that is so. */
  unknown?: string;
}

export interface Chart {
  kind: "trend" | "ranking" | "parts";
  title: string;
  of: string;
  series: Series[];
  points: Point[];
  /** The columns of counts of which one is drawn, where there is a choice. */
  measures: string[];
}

const MARKER = /^\[\d{1,6}\]$/;
const COUNT = /^\d{1,12}(?:\.\d{1,6})?$/;
const TIME = /^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?: ?UTC|Z)?)?$/;
const FEWEST = 3;
const DAY_MS = 86_400_000;
const FEWEST_PARTS = 2;
/** More parts than this nobody tells apart in a ring. */
const MOST_PARTS = 6;
/** What rounding may take from all parts together. */
const WHOLE = [99, 101] as const;
const MOST_TREND = 400;
const MOST_RANKED = 15;

export function isTime(cell: string): boolean {
  return TIME.test(cell);
}

/** The chart of a table, of its column `measure` if that is one of its `measures`, else of the first; null where its rows
 * are nothing that is drawn. */
export function chartOf(table: Table, measure = ""): Chart | null {
  const first = table.rows.every((row) => MARKER.test(row[0]?.trim() ?? "")) ? 1 : 0;
  const labels = table.rows.map((row) => row[first]?.trim() ?? "");
  const counted = table.columns.flatMap((_, column) =>
    column > first && table.rows.every((row) => COUNT.test(row[column]?.trim() ?? "")) ? [column] : [],
  );
  const value = (row: string[], column: number): number => Number(row[column]);
  const percent = counted.find((column) => /^percent$/i.test(table.columns[column] ?? ""));
  const whole = percent === undefined ? 0 : table.rows.reduce((sum, row) => sum + value(row, percent), 0);
  const parts = percent !== undefined && percent > first + 1 && whole >= WHOLE[0] && whole <= WHOLE[1];
  if (table.rows.length < (parts ? FEWEST_PARTS : FEWEST) || counted[0] !== first + 1) {
    return null;
  }
  const choice = counted.filter((column) => column !== percent);
  const chosen = choice.find((column) => table.columns[column] === measure) ?? first + 1;
  const named = (columns: number[]): string[] =>
    columns.length < 2 ? [] : columns.map((column) => table.columns[column] ?? "");
  const times = table.rows.length <= MOST_TREND ? evenSteps(labels) : null;
  if (times !== null) {
    const severities = counted.filter((column) => isSeverity(table.columns[column] ?? ""));
    const drawn = severities.length > 1 ? severities.toReversed() : [chosen];
    const days = labels.every((label) => label.length <= 10 || /[ T]00:00/.test(label));
    return {
      kind: "trend",
      title: table.title || `${table.columns[chosen] ?? ""} by time`,
      measures: severities.length > 1 ? [] : named(choice),
      of: table.columns[first] ?? "",
      series: drawn.map((column) => seriesOf(table.columns[column] ?? "")),
      points: times.map((place) => {
        const full = typeof place === "string" ? place : (labels[place] ?? "");
        const row = typeof place === "string" ? undefined : table.rows[place];
        return { label: shortTime(full, days), full, values: drawn.map((column) => (row ? value(row, column) : 0)) };
      }),
    };
  }
  const ranked = table.rows.map((row) => value(row, first + 1));
  const falls = ranked.every((each, place) => place === 0 || each <= (ranked[place - 1] ?? 0));
  const names = labels.every((label) => label !== "" && !COUNT.test(label) && !isTime(label));
  if (falls && names && new Set(labels).size === labels.length && (ranked[0] ?? 0) > 0) {
    return {
      kind: parts && labels.length <= MOST_PARTS ? "parts" : "ranking",
      title:
        table.title ||
        (parts
          ? `Shares by ${(table.columns[first] ?? "").toLowerCase()}`
          : `${table.columns[chosen] ?? ""} by ${lowered(table.columns[first] ?? "")}`),
      of: table.columns[first] ?? "",
      series: [seriesOf(table.columns[chosen] ?? "")],
      measures: parts ? [] : named(choice),
      points: table.rows
        .map((row, place) => ({
          label: labels[place] ?? "",
          full: labels[place] ?? "",
          values: [value(row, chosen)],
          ...(parts ? { percent: value(row, percent) } : {}),
        }))
        .sort((one, other) => (other.values[0] ?? 0) - (one.values[0] ?? 0))
        .slice(0, MOST_RANKED),
    };
  }
  return null;
}

const BY_SEVERITY = /^\/summary\/by_severity\/([A-Za-z]+)$/;

/** How the rows of one call of an answer share out by severity, worst first; null where one does not say. */
export function shareOf(evidence: Evidence[]): { series: Series; count: number }[] | null {
  const told = evidence.filter((piece) => BY_SEVERITY.test(piece.pointer) && typeof piece.value === "number");
  const [first] = told;
  const parts = told
    .filter((piece) => piece.call_id === first?.call_id)
    .map((piece) => ({
      series: seriesOf(BY_SEVERITY.exec(piece.pointer)?.[1] ?? ""),
      count: piece.value as number,
    }));
  const once = parts.filter(
    (part, place) => parts.findIndex((each) => each.series.name === part.series.name) === place,
  );
  return once.filter((part) => part.count > 0).length > 1 ? once : null;
}

function seriesOf(name: string): Series {
  return { name, tone: isSeverity(name) ? name.toLowerCase() : "" };
}

/** The places of times that follow each other in equal steps, and between them the steps that have no row: a count of
 * what is there leaves out where nothing is. Null for others. */
function evenSteps(labels: string[]): (number | string)[] | null {
  if (!labels.every(isTime)) {
    return null;
  }
  const times = labels.map((label) => Date.parse(label.replace(/ UTC$/, "Z").replace(" ", "T")));
  const steps = times.slice(1).map((time, place) => time - (times[place] ?? 0));
  const step = Math.min(...steps);
  // A day of another length, where clocks are set, is a step as well.
  const slack = step > DAY_MS / 2 ? DAY_MS / 24 : 0;
  const whole = steps.map((each) => Math.round(each / step));
  const even = steps.every((each, place) => Math.abs(each - (whole[place] ?? 0) * step) <= slack);
  const missing = whole.reduce((sum, each) => sum + each - 1, 0);
  if (!(step > 0 && even && missing <= labels.length / 2 && labels.length + missing <= MOST_TREND)) {
    return null;
  }
  return times.flatMap((time, place) => [
    place,
    ...Array.from({ length: (whole[place] ?? 1) - 1 }, (_, at) => alike(time + (at + 1) * step, labels[place] ?? "")),
  ]);
}

/** A time written as `label` is. */
function alike(time: number, label: string): string {
  const zone = /(?: UTC|Z)$/.exec(label)?.[0] ?? "";
  const told = new Date(time).toISOString().slice(0, label.length - zone.length);
  return `${/\dT\d/.test(label) ? told : told.replace("T", " ")}${zone}`;
}

/** A heading amid a sentence; a name of a column, as `UserPrincipalName`, stays as it is. */
export function lowered(heading: string): string {
  return /^[A-Z][a-z ]*$/.test(heading) ? heading.toLowerCase() : heading;
}

function shortTime(label: string, days: boolean): string {
  return days ? label.slice(5, 10) : `${label.slice(5, 10)} ${label.slice(11, 16)}`;
}
