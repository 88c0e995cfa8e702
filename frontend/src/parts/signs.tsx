// Small signs that several views draw: a time, a severity, a status, a choice among values.
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { local, shortly, zone } from "../times.ts";
import { visible } from "../visible.ts";

/** A time in the zone of the person; UTC stands beside it for whoever points at it. */
export function Time(props: { at: string | null; none?: string; short?: boolean }): JSX.Element {
  const { at, none = "not known" } = props;
  const told = at === null ? null : props.short ? shortly(at) : local(at);
  if (at === null || told === null) {
    return <span class="quiet">{at === null ? none : visible(at)}</span>;
  }
  return (
    <time dateTime={at} title={`${at.slice(0, 19).replace("T", " ")} UTC`}>
      {told}
    </time>
  );
}

export function ZoneLine(): JSX.Element {
  return <span class="quiet">Times are in {visible(zone())}.</span>;
}

/** How many of the three bars are filled. */
const FILLED: Record<string, number> = { High: 3, Medium: 2, Low: 1, Informational: 0 };
const BARS = [
  { x: 1, y: 8 },
  { x: 5.5, y: 5 },
  { x: 10, y: 2 },
];

export function isSeverity(word: string): boolean {
  return Object.hasOwn(FILLED, word);
}

/** A severity by its bars, its word and its colour. */
export function Severity({ of }: { of: string | null }): JSX.Element {
  if (of === null) {
    return <span class="quiet">not known</span>;
  }
  const filled = isSeverity(of) ? (FILLED[of] ?? 0) : 0;
  return (
    <span class={`severity ${isSeverity(of) ? of.toLowerCase() : ""}`}>
      <svg viewBox="0 0 14 14" aria-hidden="true">
        {BARS.map(({ x, y }, place) => (
          <rect
            key={x}
            x={x}
            y={filled === 0 ? 10 : y}
            width={3}
            height={filled === 0 ? 2 : 12 - y}
            class={place < filled || filled === 0 ? "on" : ""}
          />
        ))}
      </svg>
      {visible(of)}
    </span>
  );
}

/** The state of an incident: a hollow dot for a new one, a filled one for what somebody works on or has closed. */
export function Status({ of }: { of: string | null }): JSX.Element {
  const sort = of === "Active" ? "active" : of === "Closed" ? "closed" : "";
  return <span class={`status-dot ${sort}`}>{visible(of ?? "not known")}</span>;
}

export function Owner({ of }: { of: string | null }): JSX.Element {
  return of === null ? <span class="quiet nowrap">no owner</span> : <span class="person">{visible(of)}</span>;
}

/** A choice among values, each with its words. */
export function Choice(props: {
  label: string;
  value: string;
  options: [string, string][];
  onChange: (value: string) => void;
}): JSX.Element {
  const id = useId();
  return (
    <div class="choice">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.options.map(([value, words]) => (
          <option key={value} value={value}>
            {visible(words)}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A choice among the workspaces, the default one first; nothing where there is one. */
export function WorkspaceChoice(props: {
  names: string[];
  value: string;
  all?: boolean;
  onChange: (name: string) => void;
}): JSX.Element | null {
  const [first, ...others] = props.names;
  if (first === undefined || others.length === 0) {
    return null;
  }
  const options: [string, string][] = [["", first], ...others.map((name): [string, string] => [name, name])];
  if (props.all) {
    options.push(["all", "all of them"]);
  }
  return <Choice label="Workspace" value={props.value} options={options} onChange={props.onChange} />;
}
