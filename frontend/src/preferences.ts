// How a person wants to be answered, kept by this browser and sent with each question. Nothing secret is in it.
import type { Session } from "./wire.ts";

export interface Preferences {
  workspace: string;
  timezone: string;
  verbosity: string;
}

export const VERBOSITIES = { short: "the facts", normal: "the facts and how they were found", full: "everything" };

const PLACE = "sentinel-preferences";
const NONE: Preferences = { workspace: "", timezone: "", verbosity: "" };

/** What is kept; an empty text is no wish. */
export function preferences(): Preferences {
  try {
    const kept = JSON.parse(localStorage.getItem(PLACE) ?? "{}") as Partial<Preferences>;
    const texts = Object.entries({ ...NONE, ...kept }).map(([name, value]) => [name, String(value)]);
    return Object.fromEntries(texts) as unknown as Preferences;
  } catch {
    return NONE;
  }
}

/** Keep them; false where this browser keeps nothing. */
export function keep(wanted: Preferences): boolean {
  try {
    localStorage.setItem(PLACE, JSON.stringify(wanted));
    return true;
  } catch {
    return false;
  }
}

const FOUND_ALONE = "sentinel-found-alone";

/** Whether what was not found is hidden; what this browser does not keep is forgotten with the page. */
export function foundAloneWanted(): boolean {
  try {
    return localStorage.getItem(FOUND_ALONE) === "yes";
  } catch {
    return false;
  }
}

export function keepFoundAlone(wanted: boolean): void {
  try {
    localStorage.setItem(FOUND_ALONE, wanted ? "yes" : "no");
  } catch {
    // The choice holds for this page then.
  }
}

const ADDRESS = "sentinel-address-";

/** The address by which Sentinel knows who signs in as `name`: the one that was told here, else a name that is one. */
export function ownAddress(name: string): string {
  try {
    return localStorage.getItem(ADDRESS + name) ?? (name.includes("@") ? name : "");
  } catch {
    return name.includes("@") ? name : "";
  }
}

export function keepOwnAddress(name: string, address: string): void {
  try {
    localStorage.setItem(ADDRESS + name, address);
  } catch {
    // It is written again the next time.
  }
}

const QUESTIONS = "sentinel-questions-";
const MOST_QUESTIONS = 20;

/** The questions that who signs in as `name` keeps, the newest first. */
export function keptQuestions(name: string): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(QUESTIONS + name) ?? "[]");
    return Array.isArray(kept) ? kept.map(String) : [];
  } catch {
    return [];
  }
}

export function keepQuestions(name: string, questions: string[]): void {
  try {
    localStorage.setItem(QUESTIONS + name, JSON.stringify(questions.slice(0, MOST_QUESTIONS)));
  } catch {
    // The button goes on saying that it is not kept.
  }
}

const THEME = "sentinel-theme";

/** Whether the page is dark now: by this person's choice, else as the system is. */
export function darkNow(): boolean {
  return document.documentElement.dataset.theme === undefined
    ? window.matchMedia("(prefers-color-scheme: dark)").matches
    : document.documentElement.dataset.theme === "dark";
}

/** Use the theme, and keep the choice where this browser keeps anything. */
export function keepTheme(dark: boolean): void {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  try {
    localStorage.setItem(THEME, dark ? "dark" : "light");
  } catch {
    // The choice holds for this page then.
  }
}

/** Use the theme that was chosen before, if one was. */
export function applyTheme(): void {
  try {
    const kept = localStorage.getItem(THEME);
    if (kept === "dark" || kept === "light") {
      document.documentElement.dataset.theme = kept;
    }
  } catch {
    // As the system is, then.
  }
}

const AWAY_MS = 30 * 60_000;

/** When this person was here before, in this browser: what is newer is new to them. Null at their first visit. */
export function lastVisit(name: string): string | null {
  return visits(name).before;
}

/** The person is here now. After half an hour away it is another visit. */
export function visit(name: string): void {
  const { before, latest } = visits(name);
  const now = new Date().toISOString();
  const returned = latest !== null && Date.now() - Date.parse(latest) > AWAY_MS;
  keepVisits(name, returned ? latest : before, now);
}

/** Everything so far is seen. */
export function seenAll(name: string): void {
  const now = new Date().toISOString();
  keepVisits(name, now, now);
}

function visits(name: string): { before: string | null; latest: string | null } {
  try {
    const kept = JSON.parse(localStorage.getItem(`sentinel-visits-${name}`) ?? "{}") as Record<string, string>;
    const time = (text: string | undefined): string | null =>
      text === undefined || Number.isNaN(Date.parse(text)) ? null : text;
    return { before: time(kept.before), latest: time(kept.latest) };
  } catch {
    return { before: null, latest: null };
  }
}

function keepVisits(name: string, before: string | null, latest: string): void {
  try {
    localStorage.setItem(`sentinel-visits-${name}`, JSON.stringify({ before, latest }));
  } catch {
    // Every visit is the first one then.
  }
}

/** The time of now, `05:12 UTC`, in the zone of times. */
export function clock(): string {
  const zone = timezone();
  const told = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: zone });
  return `${told.format(Date.now())} ${zone}`;
}

/** The zone of times: the chosen one, else this browser's. */
export function timezone(): string {
  const chosen = preferences().timezone;
  return (isZone(chosen) && chosen) || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

function isZone(name: string): boolean {
  try {
    return name !== "" && Intl.DateTimeFormat("en", { timeZone: name }) !== null;
  } catch {
    return false;
  }
}

/** The options of a question. A workspace that is not served any more is left out. */
export function options(session: Session): Record<string, string> {
  const { workspace, verbosity } = preferences();
  return {
    timezone: timezone(),
    ...(session.workspaces.includes(workspace) ? { workspace } : {}),
    ...(verbosity in VERBOSITIES ? { verbosity } : {}),
  };
}

/** The workspace to read in, as its tools take it: the chosen one, empty for the first, which is the default. */
export function preferredWorkspace(session: Session): string {
  const chosen = options(session).workspace ?? "";
  return chosen === session.workspaces[0] ? "" : chosen;
}

/** The zones that this browser knows. */
export function timezones(): string[] {
  return ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];
}
