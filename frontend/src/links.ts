// Where a value of a result leads on this page: an incident to its view, a name to everything that names it. By its
// place in the result, never by how it looks. Pure.

const INCIDENT = /\/(?:incident_)?number$|\/incident_numbers\/\d+$/;
const OF_INCIDENTS = new Set(["query_incidents", "get_incident_detail"]);
const ENTITY = /\/entities\/(?:[a-z-]+\/)?\d+\/name$|\/compromised_entity$/;
const TOP_ENTITIES = "get_top_entities";
const KNOWLEDGE = "search_knowledge_base";
const CITED = /^\/hits\/\d+\/citation$/;
const PAST = /^incident-(\d{1,9})$/;

interface Placed {
  pointer: string;
  value: unknown;
  tool: string;
}

/** The address of a value on this page; undefined for one that leads nowhere. */
export function linkOf({ pointer, value, tool }: Placed): string | undefined {
  const numbered = typeof value === "number" && Number.isInteger(value) && value > 0;
  if (numbered && INCIDENT.test(pointer) && isOfIncident(pointer, tool)) {
    return `#/incidents/${value}`;
  }
  if (tool === KNOWLEDGE && CITED.test(pointer) && typeof value === "string") {
    const past = PAST.exec(value)?.[1];
    return past === undefined ? documentLink(value.split(" > ")[0] ?? "") : `#/incidents/${past}`;
  }
  const named = ENTITY.test(pointer) || (tool === TOP_ENTITIES && /^\/rows\/\d+\/name$/.test(pointer));
  return named && typeof value === "string" && value !== "" ? entityLink(value) : undefined;
}

export function entityLink(name: string): string {
  return `#/entity/${encodeURIComponent(name)}`;
}

/** A document of the knowledge base. */
export function documentLink(name: string): string {
  return `#/knowledge/${encodeURIComponent(name)}`;
}

/** Where the named query of a call can be run anew, with all its columns; undefined for another call. */
export function rerunLink(call: { name: string; arguments: Record<string, unknown> }): string | undefined {
  const { template, parameters, time_window } = call.arguments;
  if (call.name !== "run_kql_query" || typeof template !== "string") {
    return undefined;
  }
  const given = Object.entries((parameters ?? {}) as Record<string, unknown>)
    .filter(([, value]) => typeof value === "string" || typeof value === "number")
    .map(([name, value]): [string, string] => [name, String(value)]);
  const query = new URLSearchParams([...given, ["time_window", typeof time_window === "string" ? time_window : ""]]);
  return `#/hunt/${encodeURIComponent(`${template}?${query}`)}`;
}

function isOfIncident(pointer: string, tool: string): boolean {
  return pointer.includes("incident_number") || OF_INCIDENTS.has(tool);
}
