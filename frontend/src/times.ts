// Times as people read them: in the zone that they chose, to the minute, in an order that sorts.
import { timezone } from "./preferences.ts";

const PARTS: Intl.DateTimeFormatOptions = {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
};
const forms = new Map<string, Intl.DateTimeFormat>();

/** The zone of times; UTC where the chosen one is none that this browser knows. */
export function zone(): string {
  return formOf(timezone()).resolvedOptions().timeZone;
}

function formOf(name: string): Intl.DateTimeFormat {
  const known = forms.get(name);
  if (known !== undefined) {
    return known;
  }
  let made: Intl.DateTimeFormat;
  try {
    made = new Intl.DateTimeFormat("en-GB", { ...PARTS, timeZone: name });
  } catch {
    made = new Intl.DateTimeFormat("en-GB", { ...PARTS, timeZone: "UTC" });
  }
  forms.set(name, made);
  return made;
}

/** A table whose newest row is older may have stopped to be filled. */
export const OLD_S = 24 * 3_600;

/** `2026-11-28 09:02` in this zone; null for what is no time. */
export function local(text: string): string | null {
  const at = Date.parse(text);
  if (Number.isNaN(at)) {
    return null;
  }
  const part = Object.fromEntries(
    formOf(timezone())
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}`;
}

/** The time alone for one of today, else day and time; null for what is no time. */
export function shortly(text: string): string | null {
  const told = local(text);
  const today = local(new Date().toISOString())?.slice(0, 10);
  return told === null ? null : told.startsWith(today ?? "-") ? told.slice(11) : told.slice(5);
}

/** A length of a call, such as `153 ms` or `2.1 s`. */
export function seconds(ms: number): string {
  return ms < 950 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A length of time in its two largest units: `2 d 3 h`. */
export function span(seconds: number): string {
  const units: [string, number][] = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
  ];
  let left = Math.max(0, Math.round(seconds));
  const told: string[] = [];
  for (const [name, size] of units) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0 && told.length < 2) {
      told.push(`${count} ${name}`);
    } else if (told.length > 0) {
      break;
    }
  }
  return told.join(" ") || `${Math.round(seconds)} s`;
}

/** How long something has been so, as a queue tells it: `2 d 3 h`, `18 h`, `5 min`. */
export function age(seconds: number): string {
  return seconds >= 3_600 && seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : span(seconds);
}

/** A number with its thousands apart. */
export function counted(number: number): string {
  return number.toLocaleString("en-GB");
}
