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
