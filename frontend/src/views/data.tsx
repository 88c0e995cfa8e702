// Rows of files put into an embedded workspace, beside whatever else is open: what became of each file, what its rows
// answer, and what the workspace holds.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { askNow } from "../draft.ts";
import { Suggested } from "../parts/around.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Choice, Time } from "../parts/signs.tsx";
import { DropBox, Uploads, useUploads } from "../parts/upload.tsx";
import { counted } from "../times.ts";
import { visible } from "../visible.ts";
import type { ImportReport, Session, TableInfo } from "../wire.ts";
import { Watchlists } from "./watchlists.tsx";

const KINDS = ".csv,.tsv,.txt,.json,.jsonl,.ndjson,.parquet,.xlsx,.zip,.gz,.log";

interface Imported {
  reports: ImportReport[];
  questions: string[];
}

export function ImportView({ session }: { session: Session }): JSX.Element {
  const names = session.stores?.workspaces ?? [];
  const [workspace, setWorkspace] = useState(names[0] ?? "");
  const [table, setTable] = useState("");
  const tables = useTables(workspace);
  const [uploads, add] = useUploads<Imported>((file) => {
    const query = new URLSearchParams({ workspace, name: file.name, ...(table === "" ? {} : { table }) });
    return ask("PUT", `/data?${query}`, file);
  }, tables.again);
  if (workspace === "") {
    return (
      <div class="stack">
        <h1>Data</h1>
        <section class="card empty">
          <p>
            Nothing can be imported here: there is no embedded workspace beside this page but the sample, which is made
            anew each day. On the machine of one: <code>sentinel workspace import FILE</code>
          </p>
        </section>
      </div>
    );
  }
  return (
    <div class="stack">
      <h1>Data</h1>
      <section class="card" aria-labelledby="import">
        <header>
          <h2 id="import">Import files</h2>
          <span class="quiet">into the workspace {visible(workspace)}</span>
        </header>
        <div class="in">
          <div class="filters">
            {names.length > 1 ? (
              <Choice
                label="Workspace"
                value={workspace}
                options={names.map((name): [string, string] => [name, name])}
                onChange={setWorkspace}
              />
            ) : null}
            <div class="choice">
              <label for="into-table">Table (optional)</label>
              <input
                id="into-table"
                placeholder="found by itself"
                list="known-tables"
                value={table}
                maxLength={100}
                pattern="[A-Za-z][A-Za-z0-9_]*"
                onInput={(event) => setTable(event.currentTarget.value.trim())}
              />
              <datalist id="known-tables">
                {(tables.found ?? []).map((each) => (
                  <option key={each.table} value={each.table} />
                ))}
              </datalist>
            </div>
          </div>
          <DropBox
            words="Drop exports here, or choose them: CSV, JSON, JSON lines, Parquet, Excel, also zipped"
            accept={KINDS}
            onFiles={add}
          />
          <p class="label">
            A file is stored whole or not at all. The same file again adds nothing. What is open beside this page goes
            on and can ask of the rows at once.
          </p>
        </div>
        <Uploads uploads={uploads} busy="Reading it in...">
          {(found) => <Told found={found} />}
        </Uploads>
      </section>
      <Watchlists workspace={workspace} />
      <Tables {...tables} />
    </div>
  );
}

function Told({ found }: { found: Imported }): JSX.Element {
  return (
    <>
      {found.reports.map((each) => (
        <Report key={`${each.file} ${each.table}`} of={each} />
      ))}
      {found.questions.length === 0 ? null : (
        <>
          <p class="label">Ask of it:</p>
          <Suggested questions={found.questions} onAsk={askNow} />
        </>
      )}
    </>
  );
}

function Report({ of }: { of: ImportReport }): JSX.Element {
  if (of.error !== "") {
    return (
      <p class="refusal">
        {visible(of.file)}: {visible(of.error)} {visible(of.next_step)}
      </p>
    );
  }
  const unfit = of.misfits.reduce((sum, each) => sum + each.count, 0);
  const added = Object.keys(of.new_columns);
  const lines = [
    ...(of.duplicates_skipped > 0 ? [`${counted(of.duplicates_skipped)} were there already.`] : []),
    ...(unfit > 0
      ? [
          `${counted(unfit)} values did not fit their column (${of.misfits.map((each) => visible(each.column)).join(", ")}) and are kept in UnfitValues.`,
        ]
      : []),
    ...of.rejects.map((each) => `No row${each.line === null ? "" : ` in line ${each.line}`}: ${visible(each.reason)}`),
    ...(of.rows_rejected > of.rejects.length ? [`${counted(of.rows_rejected)} lines in all are no row.`] : []),
    ...(added.length > 0 ? [`New columns: ${added.map(visible).join(", ")}.`] : []),
    ...of.notes.map(visible),
  ];
  return (
    <>
      <p>
        <strong>{counted(of.rows_stored)}</strong> of {counted(of.rows_read)} rows stored in{" "}
        <strong>{visible(of.table)}</strong>.
      </p>
      {lines.length === 0 ? null : (
        <ul class="label">
          {lines.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
    </>
  );
}

interface Read {
  found: TableInfo[] | null;
  refusal: Refusal | null;
  again: () => void;
}

function useTables(workspace: string): Read {
  const [state, setState] = useState<Omit<Read, "again">>({ found: null, refusal: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (workspace === "") {
      return undefined;
    }
    const ended = new AbortController();
    const path = `/data?${new URLSearchParams({ workspace })}`;
    ask<{ tables: TableInfo[] }>("GET", path, undefined, ended.signal).then(
      ({ tables }) => setState({ found: tables, refusal: null }),
      (error) => ended.signal.aborted || setState({ found: null, refusal: asRefusal(error) }),
    );
    return () => ended.abort();
  }, [workspace, turn]);
  return { ...state, again: () => setTurn((count) => count + 1) };
}

function Tables({ found, refusal, again }: Read): JSX.Element {
  return (
    <section class="card" aria-labelledby="tables" aria-busy={found === null && refusal === null}>
      <header>
        <h2 id="tables">Tables</h2>
        <span class="quiet">{found === null ? "" : `${found.length} hold rows`}</span>
      </header>
      <RefusalNotice refusal={refusal} />
      {refusal === null ? null : (
        <p>
          <button type="button" onClick={again}>
            Read it again
          </button>
        </p>
      )}
      {found === null && refusal === null ? (
        <p role="status" class="quiet">
          Reading...
        </p>
      ) : null}
      {found?.length === 0 ? <p class="empty">It holds no rows yet. Import the first file above.</p> : null}
      {found === null || found.length === 0 ? null : (
        <table class="fold" aria-label="Tables">
          <thead>
            <tr>
              <th scope="col">Table</th>
              <th scope="col" class="num">
                Rows
              </th>
              <th scope="col">Oldest</th>
              <th scope="col">Newest</th>
            </tr>
          </thead>
          <tbody>
            {found.map((each) => (
              <tr key={each.table}>
                <th scope="row" class="long">
                  {visible(each.table)}
                </th>
                <td class="num">{counted(each.rows)}</td>
                <td class="spare">
                  <Time at={each.oldest} none="no times" />
                </td>
                <td class="end">
                  <Time at={each.newest} none="no times" />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
