// What stands around every reading: its name, whether it failed, and below it how it was found and how far it reaches.
import type { ComponentChildren, JSX } from "preact";
import type { Read, Rows, Seen } from "../look.ts";
import { local, OLD_S, span } from "../times.ts";
import { shown, visible } from "../visible.ts";
import { Card } from "./card.tsx";
import { Facts } from "./data_table.tsx";
import { RefusalNotice } from "./notices.tsx";
import { Time } from "./signs.tsx";

/** A reading with its name: while it is read, when it failed, and once it is there. Failed is never told as empty, and
 * what was read for other choices is not shown under new ones, unless it is to be `kept`; `choices` stay meanwhile. */
export function Reading<T>(props: {
  title: string;
  id?: string;
  look: Read<T>;
  kept?: boolean;
  note?: ComponentChildren;
  choices?: ComponentChildren;
  children: (found: T) => ComponentChildren;
}): JSX.Element {
  const { look } = props;
  const { found } = look;
  const shown = found !== null && (props.kept === true || !look.busy);
  return (
    <Card title={props.title} id={props.id} busy={look.busy} note={props.note} side={props.choices}>
      <State of={look} shown={shown} />
      {shown ? props.children(found) : null}
    </Card>
  );
}

/** That something is being read, or why it could not be, and the same again. */
export function State(props: { of: Read<unknown>; shown?: boolean; words?: string }): JSX.Element | null {
  const { busy, refusal, again } = props.of;
  if (busy) {
    return props.shown ? null : (
      <p role="status" class="quiet">
        {props.words ?? "Reading..."}
      </p>
    );
  }
  return refusal === null ? null : (
    <>
      <RefusalNotice refusal={refusal} />
      <p>
        <button type="button" onClick={again}>
          Read it again
        </button>
      </p>
    </>
  );
}

/** What a reader must know before they believe the rows: that something is missing, or that the data is old. */
export function Warnings(props: { of: Seen<Rows<unknown, unknown>>; notes?: boolean }): JSX.Element {
  const { of } = props;
  const { coverage, notes } = of.result;
  const newest = coverage.table_newest === null ? Number.NaN : Date.parse(coverage.table_newest);
  const age = (of.at - newest) / 1000;
  const told: string[] = [];
  if (age > OLD_S) {
    told.push(`The newest row here is ${span(age)} old. Whatever came later is not in it.`);
  }
  if (coverage.partial) {
    told.push(`This is not all: ${visible(coverage.partial_reason) || "the service cut the result."}`);
  }
  return (
    <>
      {told.length === 0 ? null : (
        <ul class="warnings">
          {told.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {(props.notes === false ? [] : notes).map((note) => (
        <p key={note} class="label">
          {visible(note)}
        </p>
      ))}
    </>
  );
}

/** Why there are no rows, as far as it is known. */
export function WhyNone({ of, none }: { of: Seen<Rows<unknown, unknown>>; none: string }): JSX.Element {
  const { coverage } = of.result;
  const tables = coverage.tables.map(visible).join(", ") || "the table";
  return (
    <p>
      {none}{" "}
      {coverage.table_rows === 0 ? (
        `There is no row at all in ${tables}.`
      ) : coverage.table_newest === null ? null : (
        <>
          The newest row in {tables} is of <Time at={coverage.table_newest} />.
        </>
      )}
    </p>
  );
}

/** How a reading was made: the call, what it covers, its query, and its audit record. */
export function HowFound(props: {
  of: Seen<Rows<unknown, unknown>> | Seen<unknown>;
  /** What whoever looks after the product may want to know. */
  remarks?: string[];
}): JSX.Element {
  const { of, remarks = [] } = props;
  const facts: [string, string][] = [
    ["Tool", visible(of.tool)],
    ["Asked", shown(of.arguments)],
    ["Read at", local(new Date(of.at).toISOString()) ?? ""],
    ["Audit record", visible(of.audit_id)],
  ];
  const { coverage } = (of.result ?? {}) as Partial<Rows<unknown, unknown>>;
  if (coverage !== undefined) {
    const { start, end } = coverage.window;
    const from = start === null ? "the beginning" : (local(start) ?? visible(start));
    const to = end === null ? "now" : (local(end) ?? visible(end));
    facts.push(
      ["Rows", `${coverage.rows_returned} of ${coverage.rows_total ?? "an unknown number"}`],
      ["Window", `${from} to ${to}`],
      ["Workspace", visible(coverage.workspace)],
      ["Newest row", coverage.table_newest === null ? "not known" : (local(coverage.table_newest) ?? "")],
      ["Query", visible(coverage.query)],
    );
  }
  return (
    <details>
      <summary>How this was found</summary>
      <Facts facts={facts} />
      {remarks.map((remark) => (
        <p key={remark} class="label">
          {visible(remark)}
        </p>
      ))}
    </details>
  );
}
