// The severities of Sentinel, the worst first, and what is open. Pure.
import type { Incident } from "./tool_rows.ts";

export const SEVERITIES = ["High", "Medium", "Low", "Informational"];

export function isSeverity(word: string): boolean {
  return SEVERITIES.includes(word);
}

/** The place of a severity, 0 for the worst; what is none stands behind all of them. */
export function rankOf(severity: string | null): number {
  const place = SEVERITIES.indexOf(severity ?? "");
  return place < 0 ? SEVERITIES.length : place;
}

/** Seconds since an incident was created; null where it does not say when. */
export function ageOf(incident: Incident, now: number): number | null {
  const created = Date.parse(incident.created_time ?? "");
  return Number.isNaN(created) ? null : Math.max(0, (now - created) / 1_000);
}

/** Worst first, and of one severity what changed last. */
export function byPriority(one: Incident, other: Incident): number {
  return (
    rankOf(one.severity) - rankOf(other.severity) ||
    Date.parse(other.updated_time ?? "") - Date.parse(one.updated_time ?? "") ||
    other.number - one.number
  );
}
