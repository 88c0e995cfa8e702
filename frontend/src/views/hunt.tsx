// KQL: the named queries with what each takes, run with the person's own rights; free KQL where the server offers it. The
// rows come as a table, and as a chart where they are one.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { chartOf } from "../charts.ts";
import { type Arguments, type Rows, type Seen, useLook } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { ChartOf } from "../parts/chart.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { DataTable } from "../parts/data_table.tsx";
import { HowFound, Reading, Warnings, WhyNone } from "../parts/reading.tsx";
import { Choice } from "../parts/signs.tsx";
import { preferredWorkspace } from "../preferences.ts";
import { spaced } from "../requests.ts";
import { WINDOWS } from "../tool_rows.ts";
import { shown, visible } from "../visible.ts";
import type { Session, Table } from "../wire.ts";

interface Parameter {
  name: string;
  type: string;
  required: boolean;
  default: unknown;
  description: string;
  allowed: string[];
}

interface Template {
  name: string;
  description: string;
  tables: string[];
  parameters: Parameter[];
}

interface Found extends Rows<Record<string, unknown>, unknown> {
  columns: { name: string; type: string }[];
}

const FREE = "run_freeform_kql";
const MOST = 100;
/** The guard takes no KQL of anybody's own without a bound in time. */
const BOUNDED = WINDOWS.filter(([value]) => value !== "");

/** `id` is the name of a query, with what it is given behind a question mark. */
export function HuntView(props: { id: string | null; go: (id: string | null) => void; session: Session }): JSX.Element {
  const { go, session } = props;
  const [id = null, ...behind] = props.id?.split("?") ?? [];
  const given = new URLSearchParams(behind.join("?"));
  const list = useLook<Rows<Template, unknown>>("list_kql_templates", { detail: "full", limit: 500 });
  const [text, setText] = useState("");
  const free = useOffered(FREE);
  const templates = list.found?.result.rows ?? [];
  const chosen = templates.find((each) => each.name === id) ?? null;
  const wanted = text.trim().toLowerCase();
  const met = templates.filter((each) => `${each.name} ${each.description}`.toLowerCase().includes(wanted));
  return (
    <div class="stack">
      <h1>KQL</h1>
      <div class="hunt">
        <Reading title="Queries" look={list}>
          {() => (
            <>
              <div class="in">
                <label class="unseen" for="find-query">
                  Find a query
                </label>
                <input
                  id="find-query"
                  type="search"
                  placeholder={`Find one of ${templates.length}`}
                  value={text}
                  maxLength={100}
                  onInput={(event) => setText(event.currentTarget.value)}
                />
                <p role="status" class="label">
                  {met.length} of {templates.length}
                </p>
              </div>
              <ul class="listed">
                {free ? (
                  <li>
                    <button type="button" aria-current={id === FREE ? "true" : undefined} onClick={() => go(FREE)}>
                      <strong>KQL of your own</strong>
                    </button>
                  </li>
                ) : null}
                {met.map((each) => (
                  <li key={each.name}>
                    <button
                      type="button"
                      aria-current={each.name === id ? "true" : undefined}
                      onClick={() => go(each.name)}
                    >
                      {visible(spaced(each.name))}
                      <span class="clip label">{visible(each.description)}</span>
                    </button>
                  </li>
                ))}
              </ul>
              {free === false ? (
                <footer>
                  KQL of your own is off here. Whoever looks after this installation switches it on:{" "}
                  <code>SENTINEL_FREEFORM_KQL=on</code>
                </footer>
              ) : null}
            </>
          )}
        </Reading>
        <div class="stack">
          {id === FREE && free ? (
            <Free session={session} />
          ) : chosen !== null ? (
            <One key={props.id} template={chosen} given={given} session={session} />
          ) : (
            <section class="card empty">
              {id !== null && list.found !== null ? (
                <p>There is no query {visible(id)} here. The list has those that there are.</p>
              ) : (
                <p>
                  Choose a query. It is run with your rights, decided and recorded like every call, and its rows can be
                  drawn.
                </p>
              )}
            </section>
          )}
        </div>
      </div>
    </div>
  );
}

/** Whether the person may read with the tool; null while that is not known. */
function useOffered(tool: string): boolean | null {
  const [offered, setOffered] = useState<boolean | null>(null);
  useEffect(() => {
    ask<{ tools: { name: string }[] }>("GET", "/tools").then(
      (found) => setOffered(found.tools.some((each) => each.name === tool)),
      () => {}, // the list beside it says what is wrong
    );
  }, [tool]);
  return offered;
}

function One(props: { template: Template; given: URLSearchParams; session: Session }): JSX.Element {
  const { template, session } = props;
  const [window, setWindow] = useState(props.given.get("time_window") ?? "last_7d");
  const [asked, setAsked] = useState<{ given: Arguments; turn: number } | null>(null);
  const run = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const given = template.parameters.flatMap((each): [string, unknown][] => {
      const value = String(form.get(each.name) ?? "").trim();
      return value === "" ? [] : [[each.name, typed(value, each.type)]];
    });
    const parameters = Object.fromEntries(given) as unknown as string;
    const workspace = preferredWorkspace(session);
    const all = { template: template.name, parameters, time_window: window, limit: MOST, workspace };
    setAsked((before) => ({ given: all, turn: (before?.turn ?? 0) + 1 }));
  };
  return (
    <>
      <section class="card" aria-labelledby="query">
        <header>
          <h2 id="query">{visible(spaced(template.name))}</h2>
          <span class="label">{template.tables.map(visible).join(", ")}</span>
        </header>
        <form class="in" onSubmit={run}>
          <p>{visible(template.description)}</p>
          <div class="filters">
            <Choice label="Window" value={window} options={WINDOWS} onChange={setWindow} />
            {template.parameters.map((each) => (
              <Field key={each.name} of={each} given={props.given.get(each.name)} />
            ))}
            <button type="submit" class="main">
              Run
            </button>
          </div>
        </form>
      </section>
      {asked === null ? null : <Result key={asked.turn} tool="run_kql_query" given={asked.given} />}
    </>
  );
}

function Field({ of, given }: { of: Parameter; given: string | null }): JSX.Element {
  const id = `parameter-${of.name}`;
  const usual = of.default === null || of.default === undefined ? "" : shown(of.default);
  return (
    <div class="choice">
      <label for={id} title={visible(of.description)}>
        {visible(spaced(of.name))}
        {of.required ? "" : " (optional)"}
      </label>
      {of.allowed.length > 0 ? (
        <select id={id} name={of.name} defaultValue={given ?? usual}>
          {of.allowed.map((each) => (
            <option key={each} selected={each === (given ?? usual)}>
              {visible(each)}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          name={of.name}
          required={of.required}
          placeholder={visible(usual)}
          defaultValue={given ?? ""}
          maxLength={1_000}
        />
      )}
    </div>
  );
}

function typed(value: string, type: string): unknown {
  return /^(?:int|long|real|number)/.test(type) && /^-?\d+(?:\.\d+)?$/.test(value) ? Number(value) : value;
}

function Free({ session }: { session: Session }): JSX.Element {
  const [window, setWindow] = useState("last_7d");
  const [asked, setAsked] = useState<{ given: Arguments; turn: number } | null>(null);
  return (
    <>
      <Card id="query" title="KQL of your own">
        <form
          class="in"
          onSubmit={(event) => {
            event.preventDefault();
            const kql = String(new FormData(event.currentTarget).get("kql") ?? "");
            const given = { kql, time_window: window, limit: MOST, workspace: preferredWorkspace(session) };
            setAsked((before) => ({ given, turn: (before?.turn ?? 0) + 1 }));
          }}
        >
          <label>
            KQL
            <textarea class="mono" name="kql" rows={8} required maxLength={20_000} spellcheck={false} />
          </label>
          <div class="filters">
            <Choice label="Window" value={window} options={BOUNDED} onChange={setWindow} />
            <button type="submit" class="main">
              Run
            </button>
          </div>
        </form>
      </Card>
      {asked === null ? null : <Result key={asked.turn} tool={FREE} given={asked.given} />}
    </>
  );
}

function Result({ tool, given }: { tool: string; given: Arguments }): JSX.Element {
  const look = useLook<Found>(tool, given);
  return (
    <Reading title="Rows" look={look}>
      {(found) => <RowsOf found={found} />}
    </Reading>
  );
}

function RowsOf({ found }: { found: Seen<Found> }): JSX.Element {
  const { rows, columns, coverage } = found.result;
  const table = useMemo(() => tableOf(found.result), [found]);
  const chart = useMemo(() => chartOf(table), [table]);
  return (
    <>
      <Warnings of={found} />
      {rows.length === 0 ? (
        <div class="in">
          <WhyNone of={found} none="No row matches." />
        </div>
      ) : null}
      {chart === null ? null : (
        <div class="in">
          <ChartOf chart={chart} />
        </div>
      )}
      {rows.length === 0 ? null : <DataTable {...table} title={`${rows.length} rows, ${columns.length} columns`} />}
      <footer>
        <div class="row between">
          <span>
            {rows.length} of {coverage.rows_total ?? "an unknown number of"} rows
          </span>
          <CopyButton text={coverage.query} what="the query" />
        </div>
        <HowFound of={found} />
      </footer>
    </>
  );
}

function tableOf({ columns, rows }: Found): Table {
  const names = columns.map((each) => each.name);
  const times = new Set(columns.filter((each) => each.type === "datetime").map((each) => each.name));
  return {
    title: "",
    columns: names,
    rows: rows.map((row) =>
      names.map((name) => {
        const value = row[name];
        const text =
          value === null || value === undefined ? "-" : typeof value === "string" ? value : JSON.stringify(value);
        return times.has(name) ? text.replace("T", " ").replace(/(?:\.\d+)?Z$/, " UTC") : text;
      }),
    ),
  };
}
