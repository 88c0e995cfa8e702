// What the agent does while it works: each call with its time, and what its result covers.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { seconds } from "../times.ts";
import { visible } from "../visible.ts";
import type { Coverage, ToolTrace } from "../wire.ts";

const MARKS = { running: "…", ok: "✓", denied: "⊘", failed: "✗" };
const WORDS = { running: "running", ok: "done", denied: "denied", failed: "failed" };

export function ToolList({ tools, since }: { tools: ToolTrace[]; since: Map<string, number> }): JSX.Element | null {
  if (tools.length === 0) {
    return null;
  }
  return (
    <ul class="tools" aria-label="Tool calls">
      {tools.map((tool) => (
        <li key={tool.call_id} class={tool.status}>
          <span aria-hidden="true">{MARKS[tool.status]}</span> <code>{visible(tool.name)}</code> {WORDS[tool.status]},{" "}
          {tool.status === "running" ? (
            <Elapsed since={since.get(tool.call_id) ?? performance.now()} />
          ) : (
            seconds(tool.duration_ms)
          )}
          {tool.coverage === null ? null : <span class="quiet"> {coverageOf(tool.coverage)}</span>}
          {tool.detail === "" ? null : <span> {visible(tool.detail)}</span>}
        </li>
      ))}
    </ul>
  );
}

/** The time since a moment of this page's clock, as it goes on. */
export function Elapsed({ since }: { since: number }): JSX.Element {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 250);
    return () => clearInterval(timer);
  }, []);
  return <span class="elapsed">{seconds(Math.max(0, now - since))}</span>;
}

function coverageOf(coverage: Coverage): string {
  const total = coverage.rows_total === null ? "an unknown number" : String(coverage.rows_total);
  const window = `${moment(coverage.window.start, "the beginning")} to ${moment(coverage.window.end, "now")}`;
  const newest = coverage.table_newest === null ? "" : `; newest data ${moment(coverage.table_newest, "")}`;
  const partial = coverage.partial ? ` Partial: ${coverage.partial_reason}` : "";
  const tables = coverage.tables.length === 0 ? "" : ` from ${coverage.tables.join(", ")}`;
  return visible(`${coverage.rows_returned} of ${total} rows${tables}, ${window}${newest}.${partial}`);
}

/** A time of the wire as people read it, in UTC to the second. */
export function moment(text: string | null, otherwise: string): string {
  return text === null
    ? otherwise
    : `${visible(text)
        .replace("T", " ")
        .replace(/(\.\d+)?Z$/, "")} UTC`;
}
