// How an address of this page names an incident, so that a link to it can be sent.

/** Its number, with its workspace where that is not the default one. */
export function incidentAddress(incident: { number: number; workspace?: string }): string {
  return incident.workspace ? `${incident.number}@${incident.workspace}` : String(incident.number);
}

/** Where it is on this page. */
export function incidentLink(incident: { number: number; workspace?: string }): string {
  return `#/incidents/${encodeURIComponent(incidentAddress(incident))}`;
}
