// A table of things, one to a row: its columns say what they show of each.

import type { ComponentChildren, JSX } from "preact";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  /** `num` and `spare` hold for the head too. */
  class?: string | ((row: Row) => string);
  /** Whether its title stands before its cells where rows are folded. */
  told?: boolean;
  /** The cell that names its row. */
  names?: boolean;
}

function headOf(told: unknown): string | undefined {
  return typeof told === "string" ? told.match(/\b(?:num|spare)\b/g)?.join(" ") : undefined;
}

export function Table<Row>(props: {
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string | number;
  class?: string | undefined;
  rowClass?: (row: Row) => string;
  label?: string;
  caption?: ComponentChildren;
}): JSX.Element {
  return (
    <table class={props.class} aria-label={props.label}>
      {props.caption === undefined ? null : <caption>{props.caption}</caption>}
      <thead>
        <tr>
          {props.columns.map((column) => (
            <th key={column.title} scope="col" class={headOf(column.class)}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {props.rows.map((row) => (
          <tr key={props.keyOf(row)} class={props.rowClass?.(row)}>
            {props.columns.map((column) => {
              const told = typeof column.class === "function" ? column.class(row) : column.class;
              return column.names ? (
                <th key={column.title} scope="row" class={told}>
                  {column.cell(row)}
                </th>
              ) : (
                <td key={column.title} class={told} data-label={column.told ? column.title : undefined}>
                  {column.cell(row)}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
