// A table of texts that scrolls by itself where the window is narrow.
import type { ComponentChildren, JSX } from "preact";
import { visible } from "../visible.ts";
import { linked } from "./linked.tsx";

/** `first`, where it is given, draws the first cell of a row; null leaves it as text. */
export function DataTable(props: {
  title: string;
  columns: string[];
  rows: string[][];
  first?: (cells: string[]) => ComponentChildren;
}): JSX.Element {
  const title = visible(props.title) || "Table";
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="scroll" aria-label={title} tabIndex={0}>
      <table>
        <caption>{title}</caption>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th key={column} scope="col">
                {visible(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, place) => (
            <tr key={place}>
              {row.map((cell, column) => (
                <td key={column}>{(column === 0 ? props.first?.(row) : null) ?? linked(visible(cell))}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Names and values under each other; values are `visible` already. */
export function Facts({ facts }: { facts: [string, string][] }): JSX.Element {
  return (
    <dl>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>{linked(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
