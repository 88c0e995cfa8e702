// What somebody asks a person to allow, in the words of the work: who wants to do what to which incident. Pure.
import { shown } from "./visible.ts";
import type { Approval } from "./wire.ts";

/** A field that a request writes, with where its value comes from. */
export interface Change {
  /** The argument of the call. */
  name: string;
  label: string;
  /** What stood there as the gateway read it; undefined where it did not. */
  before?: string;
  after: string;
  from: "words" | "named" | "trusted" | "outside" | "filled";
}

const CHANGES_INCIDENT = "update_incident";
const COMMENTS_INCIDENT = "add_incident_comment";
/** The tools that write to an incident. */
export const CHANGES = new Set([CHANGES_INCIDENT, COMMENTS_INCIDENT]);
const PLACES = new Set(["incident", "workspace"]);
const LONGEST = 80;

/** `anna wants to close #127 “Unfamiliar sign-in” (Low, New to Closed, benign positive)`; not `visible` yet. */
export function titleOf(approval: Approval): string {
  // Of who asks without the agent the gateway knows a key, and the page the name.
  return approval.reader === null ? approval.title : `${approval.reader} wants to ${doingOf(approval)}`;
}

/** Who is behind the request. */
export function askerOf(approval: Approval): string {
  return approval.reader ?? (approval.person || "The agent");
}

/** The number of the incident that would be changed; null for a request about something else. */
export function incidentOf(args: Record<string, unknown> | null): string | null {
  const given = args?.incident;
  return typeof given === "string" || typeof given === "number" ? String(given) : null;
}

/** What the call would do: `close incident 127 as Benign positive`. */
export function doingOf({ tool, arguments: given, effect }: Pick<Approval, "tool" | "arguments" | "effect">): string {
  if (given === null) {
    return `use ${tool}`;
  }
  const incident = `incident ${shown(given.incident ?? "")}`;
  if (tool === CHANGES_INCIDENT) {
    return changed(given, incident);
  }
  if (tool === COMMENTS_INCIDENT) {
    return `comment on ${incident}`;
  }
  const told = Object.values(given).map(shown).join(", ").replaceAll("\n", " ");
  const behind = told.length > LONGEST ? `${told.slice(0, LONGEST)}...` : told;
  const verb = effect === "read" ? "read with" : effect === "external" ? "send out with" : "run";
  return `${verb} ${tool}${behind === "" ? "" : `: ${behind}`}`;
}

function changed(given: Record<string, unknown>, incident: string): string {
  const parts: string[] = [];
  if (given.status === "Closed") {
    const as = given.classification === undefined ? "" : ` as ${spaced(shown(given.classification))}`;
    parts.push(`close ${incident}${as}`);
  } else if (given.status !== undefined) {
    parts.push(`set ${incident} to ${shown(given.status)}`);
  }
  if (given.owner !== undefined) {
    parts.push(`assign ${incident} to ${shown(given.owner)}`);
  }
  if (given.severity !== undefined) {
    parts.push(`make ${incident} ${shown(given.severity)}`);
  }
  return parts.join(" and ") || `change ${incident}`;
}

/** The fields that a call writes, without the ones that say where. */
export function writtenBy(args: Record<string, unknown>): { name: string; label: string; after: string }[] {
  return Object.entries(args)
    .filter(([name]) => incidentOf(args) === null || !PLACES.has(name))
    .map(([name, value]) => ({ name, label: spaced(name), after: shown(value) }));
}

/** Every field that the call writes, in the order of its arguments; behind them what the tool fills in. */
export function changesOf(approval: Approval): Change[] {
  const read = new Map(approval.subject?.changes.map((each) => [each.field, each]) ?? []);
  const before = (name: string): Pick<Change, "before"> => {
    const found = read.get(name);
    return found === undefined ? {} : { before: shown(found.before ?? "not set") };
  };
  const given = writtenBy(approval.arguments ?? {}).map((change): Change => {
    const { name } = change;
    return {
      ...change,
      ...before(name),
      from: approval.named.includes(name)
        ? "named"
        : approval.said.includes(name)
          ? "words"
          : approval.argument_labels[name]?.integrity === "UNTRUSTED"
            ? "outside"
            : "trusted",
    };
  });
  const filled = [...read.values()].filter(
    (each) => approval.arguments !== null && !(each.field in approval.arguments),
  );
  return [
    ...given,
    ...filled.map(({ field, after }): Change => {
      return { name: field, label: spaced(field), ...before(field), after: shown(after ?? "not set"), from: "filled" };
    }),
  ];
}

/** `BenignPositive` and `classification_reason` as words. */
export function spaced(name: string): string {
  const words = name.replaceAll("_", " ").replace(/(?<=\p{Ll})(?=\p{Lu})/gu, " ");
  return words.slice(0, 1).toUpperCase() + words.slice(1).toLowerCase();
}
