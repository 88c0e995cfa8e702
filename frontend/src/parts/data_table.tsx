// Tables of texts that scroll by themselves where the window is narrow, and names with their values.

import type { ComponentChildren, JSX } from "preact";
import { isTime } from "../charts.ts";
import { isSeverity } from "../severities.ts";
import { visible } from "../visible.ts";
import { breakable, linked } from "./linked.tsx";
import { Scroll } from "./scroll.tsx";
import { Severity } from "./signs.tsx";

const COUNT = /^-?\d[\d.,]*$/;
const FULL_TIME = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?: UTC|Z)$/;
const MOST = 500;

/** `first`, where it is given, draws the first cell of a row; null leaves it as text. `link` says where a cell leads. */
export function DataTable(props: {
  title: string;
  columns: string[];
  rows: string[][];
  first?: (cells: string[]) => ComponentChildren;
  link?: (cell: string) => string | undefined;
}): JSX.Element {
  const title = visible(props.title) || "Table";
  const figures = props.columns.map(
    (_, column) =>
      column > 0 &&
      props.rows.length > 0 &&
      props.rows.every((row) => COUNT.test(row[column] ?? "") || row[column] === "-"),
  );
  const utc = props.columns.map(
    (_, column) => props.rows.length > 0 && props.rows.every((row) => FULL_TIME.test(row[column] ?? "")),
  );
  const told = mostTold(props.rows, props.columns.length);
  return (
    <Scroll label={title} tall>
      <table class="fold">
        <thead>
          <tr>
            {props.columns.map((column, at) => (
              <th key={`${at}${column}`} scope="col" class={figures[at] ? "num" : undefined}>
                {visible(column) || <span class="unseen">Row</span>}
                {utc[at] ? ", UTC" : ""}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.slice(0, MOST).map((row, place) => (
            <tr key={place}>
              {row.map((cell, column) => (
                <td
                  key={column}
                  class={
                    figures[column] ? "num" : column === told ? "long wide" : cell.length > 24 ? "long" : undefined
                  }
                  data-label={figures[column] && column > 0 ? visible(props.columns[column] ?? "") : undefined}
                >
                  {(column === 0 ? props.first?.(row) : null) ?? cellOf(cell, props.link)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {props.rows.length > MOST ? (
        <p class="quiet in">
          {MOST} of {props.rows.length} rows are drawn; ask for fewer, or save the report as CSV.
        </p>
      ) : null}
    </Scroll>
  );
}

/** The column with the most words: where a row is narrow, it stands above the others. */
function mostTold(rows: string[][], columns: number): number {
  const lengths = Array.from({ length: columns }, (_, column) =>
    rows.reduce((sum, row) => sum + (FULL_TIME.test(row[column] ?? "") ? 0 : (row[column] ?? "").length), 0),
  );
  return lengths.indexOf(Math.max(0, ...lengths));
}

function cellOf(cell: string, link: ((cell: string) => string | undefined) | undefined): ComponentChildren {
  const trimmed = cell.trim();
  if (isSeverity(trimmed)) {
    return <Severity of={trimmed} />;
  }
  if (isTime(trimmed) && FULL_TIME.test(trimmed)) {
    return (
      <time dateTime={trimmed.replace(" UTC", "Z").replace(" ", "T")} title={trimmed}>
        {shortened(trimmed)}
      </time>
    );
  }
  const whole = link?.(trimmed);
  if (whole !== undefined) {
    return <a href={whole}>{breakable(visible(cell))}</a>;
  }
  const parts = trimmed.split(", ");
  if (parts.length > 1 && parts.every((part) => link?.(part) !== undefined)) {
    return parts.map((part) => (
      <a key={part} class="numbered" href={link?.(part) ?? ""}>
        {visible(part)}
      </a>
    ));
  }
  return trimmed === "-" ? <span class="quiet">–</span> : linked(visible(cell));
}

/** `11-28 09:02`, with the seconds where the cell has some, and the year where it is another one. */
function shortened(time: string): string {
  const seconds = time.slice(16, 19);
  const day = time.slice(0, 4) === new Date().toISOString().slice(0, 4) ? time.slice(5, 10) : time.slice(0, 10);
  return `${day} ${time.slice(11, 16)}${seconds === ":00" ? "" : seconds}`;
}

/** Names and values under each other; values are `visible` already. */
export function Facts({ facts }: { facts: [string, string][] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>{linked(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
