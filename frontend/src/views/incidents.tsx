// Incidents: the list with its filters and order, read anew each time, and the way to each of them.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { asRefusal, type Refusal } from "../api.ts";
import { incidentAddress, incidentLink } from "../incident_address.ts";
import { type Arguments, look, type Rows, type Seen, useLook } from "../look.ts";
import { RefusalNotice } from "../parts/notices.tsx";
import { HowFound, Warnings, WhyNone } from "../parts/reading.tsx";
import { Choice, Owner, Severity, Status, Time, WorkspaceChoice, ZoneLine } from "../parts/signs.tsx";
import { preferredWorkspace } from "../preferences.ts";
import { SEVERITIES } from "../severities.ts";
import { type Incident, type IncidentSummary, WINDOWS } from "../tool_rows.ts";
import { shown, visible } from "../visible.ts";
import type { Approval, Session } from "../wire.ts";
import { IncidentView } from "./incident.tsx";

const PAGE = 50;
const STATUSES: [string, string][] = [
  ["Open", "new or active"],
  ["New", "new"],
  ["Active", "active"],
  ["Closed", "closed"],
  ["", "any"],
];
const ORDERS: Record<string, string> = {
  newest: "newest first",
  oldest: "oldest first",
  severity: "most severe first",
  updated: "last changed",
};

type Listed = Rows<Incident, IncidentSummary>;

interface Filters {
  time_window: string;
  min_severity: string;
  status: string;
  order: string;
  workspace: string;
  /** A part of a name, or `unassigned`. */
  owner: string;
}

const USUAL: Filters = {
  time_window: "last_30d",
  min_severity: "",
  status: "Open",
  order: "severity",
  workspace: "",
  owner: "",
};
const NAMES = Object.keys(USUAL) as (keyof Filters)[];

/** They outlive the list, so that whoever comes back from an incident finds it as they left it. */
const kept: { filters: Filters | null; text: string; opened: string } = { filters: null, text: "", opened: "" };

/** `id` is that of an incident, or `?` and the filters of the list, each as its tool takes it. */
export function IncidentsView(props: {
  id: string | null;
  go: (id: string | null) => void;
  session: Session;
  waiting: Approval[];
  reload: () => void;
}): JSX.Element {
  const { id, go, session } = props;
  const usual = kept.filters ?? { ...USUAL, workspace: preferredWorkspace(session) };
  if (id === null || id.startsWith("?")) {
    const filters = id === null ? usual : filtersOf(id);
    kept.filters = filters;
    return <IncidentList filters={filters} workspaces={session.workspaces} onFilter={(to) => go(addressOf(to))} />;
  }
  kept.opened = id;
  return <IncidentView key={id} id={id} session={session} waiting={props.waiting} reload={props.reload} />;
}

function addressOf(filters: Filters): string {
  return `?${new URLSearchParams(NAMES.map((name) => [name, filters[name]])).toString()}`;
}

/** The filters of an address. What is not in it is as usual; what the tool does not take, it refuses in its words. */
function filtersOf(address: string): Filters {
  const given = new URLSearchParams(address.slice(1));
  const filters = { ...USUAL };
  for (const name of NAMES) {
    filters[name] = (given.get(name) ?? USUAL[name]).slice(0, 40);
  }
  return filters;
}

function IncidentList(props: {
  filters: Filters;
  workspaces: string[];
  onFilter: (filters: Filters) => void;
}): JSX.Element {
  const { filters } = props;
  const [text, setText] = useState(kept.text);
  const asked: Arguments = { ...filters, limit: PAGE };
  const first = useLook<Listed>("query_incidents", asked);
  const more = useMore(first.found, asked);
  const change = (part: Partial<Filters>): void => props.onFilter({ ...filters, ...part });
  const narrow = (to: string): void => {
    kept.text = to;
    setText(to);
  };
  const rows = onceEach([...(first.found?.result.rows ?? []), ...more.rows], filters.workspace);
  const matching = rows.filter((row) => holds(row, text));
  return (
    <div class="stack">
      <div class="row">
        <h1>Incidents</h1>
        <span role="status" class="quiet">
          {first.busy ? "Reading incidents..." : told(first.found, rows.length, matching.length, text)}
        </span>
        <button type="button" class="push" onClick={first.again}>
          Read again
        </button>
      </div>
      <search class="filters">
        <Choice
          label="Created in"
          value={filters.time_window}
          options={WINDOWS}
          onChange={(time_window) => change({ time_window })}
        />
        <Choice
          label="Severity"
          value={filters.min_severity}
          options={[["", "any"], ...SEVERITIES.slice(0, 3).map(atLeast)]}
          onChange={(min_severity) => change({ min_severity })}
        />
        <Choice label="Status" value={filters.status} options={STATUSES} onChange={(status) => change({ status })} />
        <Choice
          label="Order"
          value={filters.order}
          options={Object.entries(ORDERS)}
          onChange={(order) => change({ order })}
        />
        <WorkspaceChoice
          all
          names={props.workspaces}
          value={filters.workspace}
          onChange={(workspace) => change({ workspace })}
        />
        <Choice
          label="Owner"
          value={filters.owner}
          options={[
            ["", "any"],
            ["unassigned", "no owner"],
            ...(filters.owner === "" || filters.owner === "unassigned"
              ? []
              : [[filters.owner, filters.owner] as [string, string]]),
          ]}
          onChange={(owner) => change({ owner })}
        />
        <div class="choice">
          <label for="text">Text in these rows</label>
          <input
            id="text"
            type="search"
            value={text}
            maxLength={200}
            onInput={(event) => narrow(event.currentTarget.value)}
          />
        </div>
      </search>
      <RefusalNotice refusal={first.refusal} />
      {first.found === null ? null : (
        <>
          <Warnings of={first.found} />
          <Counts of={first.found} />
          {rows.length === 0 ? (
            <None
              of={first.found}
              onWiden={() => change({ time_window: "", min_severity: "", status: "", owner: "" })}
            />
          ) : (
            <Table rows={matching} order={filters.order} busy={first.busy} onOrder={(order) => change({ order })} />
          )}
          {more.left > 0 ? (
            <button type="button" disabled={more.busy} onClick={more.load}>
              {more.busy ? "Reading..." : `Show the next ${Math.min(PAGE, more.left)} of ${more.left} more`}
            </button>
          ) : null}
          <RefusalNotice refusal={more.refusal} />
          <p class="label">
            <ZoneLine />
          </p>
          <HowFound of={first.found} />
        </>
      )}
    </div>
  );
}

/** Each row once, though it moved to a later page between two readings, and with the workspace that it is of. */
function onceEach(rows: Incident[], asked: string): Incident[] {
  const workspace = asked === "" || asked === "all" ? {} : { workspace: asked };
  const placed = rows.map((row) => ({ ...workspace, ...row }));
  return [...new Map(placed.map((row) => [incidentAddress(row), row])).values()];
}

function atLeast(severity: string): [string, string] {
  return [severity, severity === "High" ? "High" : `${severity} or higher`];
}

/** The rows behind the first page. A page that was read for other filters is left out. */
function useMore(
  first: Seen<Listed> | null,
  asked: Arguments,
): { rows: Incident[]; left: number; busy: boolean; refusal: Refusal | null; load: () => void } {
  const [state, setState] = useState<{ of: unknown; rows: Incident[] }>({ of: null, rows: [] });
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const rows = state.of === first ? state.rows : [];
  const have = (first?.result.rows.length ?? 0) + rows.length;
  const load = async (): Promise<void> => {
    setBusy(true);
    try {
      const next = await look<Listed>("query_incidents", { ...asked, offset: have });
      setState({ of: first, rows: [...rows, ...next.result.rows] });
      setRefusal(null);
    } catch (error) {
      setRefusal(asRefusal(error));
    }
    setBusy(false);
  };
  const total = first?.result.coverage.rows_total ?? 0;
  return { rows, left: Math.max(0, total - have), busy, refusal, load: () => void load() };
}

function told(found: Seen<Listed> | null, loaded: number, matching: number, text: string): string {
  if (found === null) {
    return "";
  }
  const total = found.result.coverage.rows_total;
  const of = total === null ? `${loaded} incidents, of an unknown number` : `${loaded} of ${total} incidents`;
  return text.trim() === "" ? `${of}.` : `${matching} of the ${loaded} that are here hold the text; ${of} are here.`;
}

function holds(row: Incident, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  const parts = [row.title, row.owner, row.number, row.severity, row.status, row.classification, row.workspace];
  return parts.some((part) =>
    shown(part ?? "")
      .toLowerCase()
      .includes(wanted),
  );
}

function None({ of, onWiden }: { of: Seen<Listed>; onWiden: () => void }): JSX.Element {
  return (
    <>
      <WhyNone of={of} none="No incident matches these filters." />
      <button type="button" onClick={onWiden}>
        Show all that are kept
      </button>
    </>
  );
}

/** How many there are in all, of the rows here or not. */
function Counts({ of }: { of: Seen<Listed> }): JSX.Element | null {
  const { by_severity = {}, by_status = {}, by_workspace = {} } = of.result.summary;
  const failed = Object.entries(by_workspace).filter(([, each]) => each.error !== null);
  return (
    <>
      <ul class="counts" aria-label="In all">
        {SEVERITIES.filter((name) => Object.hasOwn(by_severity, name)).map((name) => (
          <li key={name}>
            <Severity of={name} /> {by_severity[name]}
          </li>
        ))}
        {Object.entries(by_status).map(([name, count]) => (
          <li key={name}>
            {visible(name)} {count}
          </li>
        ))}
      </ul>
      {failed.map(([name, each]) => (
        <p key={name} class="refusal">
          The workspace {visible(name)} did not answer: {visible(each.error ?? "")}
        </p>
      ))}
    </>
  );
}

const STEPS: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };

function Table(props: {
  rows: Incident[];
  order: string;
  busy: boolean;
  onOrder: (order: string) => void;
}): JSX.Element {
  const body = useRef<HTMLTableSectionElement>(null);
  useEffect(() => {
    // Whoever comes back from an incident goes on at its row.
    body.current?.querySelector<HTMLElement>(`a[href="#/incidents/${CSS.escape(kept.opened)}"]`)?.focus();
    kept.opened = "";
  }, []);
  const step = (event: KeyboardEvent): void => {
    const by = STEPS[event.key];
    const links = [...(body.current?.querySelectorAll<HTMLElement>("a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    if (by !== undefined && at >= 0) {
      event.preventDefault();
      links[at + by]?.focus();
    }
  };
  const workspaces = props.rows.some((row) => row.workspace !== undefined);
  if (props.rows.length === 0) {
    return <p class="quiet">No row here holds that text.</p>;
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="card scroll" aria-label="Incidents" tabIndex={0}>
      <table class={props.busy ? "fold busy" : "fold"} aria-busy={props.busy}>
        <thead>
          <tr>
            <Head title="Severity" orders={["severity"]} {...props} />
            <th scope="col" class="num">
              No.
            </th>
            <th scope="col">Title</th>
            <th scope="col">Status</th>
            <th scope="col">Owner</th>
            <Head title="Created" orders={["newest", "oldest"]} {...props} />
            <Head title="Changed" class="spare" orders={["updated"]} {...props} />
            <th scope="col" class="num spare">
              Alerts
            </th>
            {workspaces ? <th scope="col">Workspace</th> : null}
          </tr>
        </thead>
        <tbody ref={body} onKeyDown={step}>
          {props.rows.map((row) => (
            <tr key={incidentAddress(row)}>
              <td>
                <Severity of={row.severity} />
              </td>
              <td class="num">{row.number}</td>
              <th scope="row" class="wide long">
                <a class="title" href={incidentLink(row)}>
                  {visible(row.title ?? "") || "without a title"}
                </a>
              </th>
              <td>
                <Status of={row.status} />
              </td>
              <td>
                <Owner of={row.owner} />
              </td>
              <td class="end">
                <Time at={row.created_time} />
              </td>
              <td class="spare">
                <Time at={row.updated_time} />
              </td>
              <td class="num spare">{row.alert_count ?? <span class="quiet">not known</span>}</td>
              {workspaces ? <td>{visible(row.workspace ?? "")}</td> : null}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The head of a column by which the workspace orders all that match, shown or not. */
function Head(props: {
  title: string;
  class?: string;
  orders: [string, ...string[]];
  order: string;
  onOrder: (order: string) => void;
}): JSX.Element {
  const at = props.orders.indexOf(props.order);
  const next = props.orders[at + 1] ?? props.orders[0];
  const sort = at < 0 ? undefined : props.order === "oldest" ? "ascending" : "descending";
  return (
    <th scope="col" aria-sort={sort} class={props.class}>
      <button type="button" class="head" title={ORDERS[next]} onClick={() => props.onOrder(next)}>
        {props.title} <span aria-hidden="true">{sort === undefined ? "↕" : sort === "ascending" ? "↑" : "↓"}</span>
      </button>
    </th>
  );
}
