// The rows of the tools that these views read, as types: of each only what a view shows. `contracts/tool_schemas.py`
// and `contracts/knowledge_tools.py` describe them whole.

export interface Incident {
  number: number;
  title: string | null;
  severity: string | null;
  status: string | null;
  created_time: string | null;
  updated_time: string | null;
  closed_time: string | null;
  owner: string | null;
  classification: string | null;
  alert_count: number | null;
  provider_incident_id: string | null;
  incident_name: string | null;
  provider: string | null;
  description: string | null;
  workspace?: string;
}

export type Counts = Record<string, number>;

export interface IncidentSummary {
  by_severity?: Counts;
  by_status?: Counts;
  by_workspace?: Record<string, { rows_total: number | null; error: string | null }>;
}

export interface Named {
  kind: string;
  name: string;
}

export interface Alert {
  alert_id: string;
  name: string | null;
  severity: string | null;
  status: string | null;
  time: string | null;
  product: string | null;
  tactics: string[];
  techniques: string[];
  description: string | null;
  entities: Named[];
  entity_count: number;
  /** When its events began; `time` is when it was recorded. */
  start_time?: string | null;
  compromised_entity?: string | null;
  incident_number?: number | null;
}

export interface Entity extends Record<string, unknown> {
  name: string;
  alerts: number;
}

export interface IncidentDetail extends Incident {
  url: string | null;
  defender_url: string | null;
  open_duration_s: number | null;
  first_response_s: number | null;
  classification_reason: string | null;
  classification_comment: string | null;
  alerts: Alert[];
  alert_ids_without_row: string[];
  entities: Record<string, Entity[]>;
  entity_counts: Counts;
  comments: { time: string | null; author: string | null; message: string | null }[];
  tactics: string[];
  techniques: string[];
  custom_details: Record<string, unknown>;
  labels: string[];
  timeline: { time: string | null; event: string }[];
}

export interface DetailSummary {
  matched_by: string | null;
  ambiguous: boolean;
  left_out: Counts;
}

export interface Hit {
  citation: string;
  document_id: string;
  title: string;
  section: string;
  text: string;
  severity: string;
  status: string;
  classification: string;
  time: string | null;
  techniques: string[];
  why: { words: string[]; techniques: string[]; entities: string[]; tactics: string[] };
}

export interface Knowledge {
  total: number;
  hits: Hit[];
  remarks: string[];
  freshness: { incidents: number; playbooks: number; incidents_as_of: string | null };
}

export interface Bucket {
  time: string;
  count: number;
  high: number;
  medium: number;
  low: number;
  informational: number;
}

export interface TrendSummary {
  total: number;
  interval: string;
  timezone: string;
  peak_time: string | null;
  peak_count: number;
}

export interface TopEntity {
  kind: string;
  name: string;
  alerts: number;
  high_alerts: number;
  first_seen: string | null;
  last_seen: string | null;
  incident_numbers: number[];
}

export interface ThreatSummary {
  incidents: { total: number; open: number; by_severity: Counts; by_status: Counts };
  alerts: { total: number; by_severity: Counts };
  previous: { incidents: number | null; alerts: number | null } | null;
  top_alert_names: { name: string; count: number }[];
  tactics: Counts;
}

/** Windows of the tools, the last of them everything that is kept. */
export const WINDOWS: [string, string][] = [
  ["last_1h", "the last hour"],
  ["last_24h", "the last 24 hours"],
  ["last_3d", "the last 3 days"],
  ["last_7d", "the last 7 days"],
  ["last_14d", "the last 14 days"],
  ["last_30d", "the last 30 days"],
  ["", "everything that is kept"],
];
