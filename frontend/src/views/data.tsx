// Rows of files put into an embedded workspace, beside whatever else is open: what became of each file, what its rows
// answer, and what the workspace holds.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { askNow } from "../draft.ts";
import { type Read, useAnswer } from "../look.ts";
import { Suggested } from "../parts/around.tsx";
import { Card } from "../parts/card.tsx";
import { Reading } from "../parts/reading.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { Choice, Time } from "../parts/signs.tsx";
import { Table } from "../parts/table.tsx";
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
  const tables = useAnswer<Stored>(workspace === "" ? null : `/data?${new URLSearchParams({ workspace })}`);
  const [looking, setLooking] = useState(false);
  const looked = useRef(new Set<File>());
  const [uploads, add] = useUploads<Imported>((file) => {
    const trial = looking && !looked.current.has(file) ? { trial: "true" } : {};
    const query = new URLSearchParams({ workspace, name: file.name, ...(table === "" ? {} : { table }), ...trial });
    return ask("PUT", `/data?${query}`, file);
  }, tables.again);
  const store = (file: File): void => {
    looked.current.add(file);
    add([file]);
  };
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
      <Card id="import" title="Import files" note={<>into the workspace {visible(workspace)}</>}>
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
                {tables.found?.tables.map((each) => (
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
          <label class="tick">
            <input type="checkbox" checked={looking} onChange={(event) => setLooking(event.currentTarget.checked)} />
            Look first: show what would become of a file, and store nothing
          </label>
          <p class="label">
            A file is stored whole or not at all. The same file again adds nothing. What is open beside this page goes
            on and can ask of the rows at once.
          </p>
        </div>
        <Uploads uploads={uploads} busy="Reading it in..." sign={signOf}>
          {(found, file) => <Told found={found} onStore={() => store(file)} />}
        </Uploads>
      </Card>
      <Watchlists workspace={workspace} />
      <Tables look={tables} />
    </div>
  );
}

/** What became of a file, in a word. */
function signOf({ reports }: Imported): { word: string; tone: string } {
  const stored = reports.reduce((sum, each) => sum + each.rows_stored, 0);
  const there = reports.reduce((sum, each) => sum + each.duplicates_skipped, 0);
  const failed = reports.filter((each) => each.error !== "" || each.rows_rejected > 0).length;
  if (stored + there === 0) {
    return { word: "nothing stored", tone: "bad" };
  }
  if (reports.some((each) => each.trial)) {
    return { word: "looked at", tone: "" };
  }
  if (failed > 0) {
    return { word: "in part", tone: "warn" };
  }
  return stored === 0 ? { word: "there already", tone: "" } : { word: "done", tone: "ok" };
}

function Told({ found, onStore }: { found: Imported; onStore: () => void }): JSX.Element {
  const rows = found.reports.reduce((sum, each) => sum + each.rows_stored, 0);
  return (
    <>
      {found.reports.some((each) => each.trial) ? (
        <div class="row">
          <button type="button" class="main" onClick={onStore} disabled={rows === 0}>
            Store {counted(rows)} rows
          </button>
          <span class="label">
            Nothing is stored yet. For another table, write its name above and choose the file again.
          </span>
        </div>
      ) : null}
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
    ...of.notes.map((note) =>
      visible(note.replace(/ to choose another: --table NAME$/, " to choose another, name it above.")),
    ),
  ];
  return (
    <>
      <p>
        <strong>{counted(of.rows_stored)}</strong> of {counted(of.rows_read)} rows{" "}
        {of.trial ? "would be stored" : "stored"} in <strong>{visible(of.table)}</strong>.
        {of.oldest === "" ? null : (
          <span class="label">
            {" "}
            From {of.oldest} to {of.newest} UTC.
          </span>
        )}
      </p>
      {of.trial && of.first.length > 0 ? (
        <Scroll label={`First rows of ${visible(of.file)}`}>
          <table>
            <thead>
              <tr>
                {of.columns.map((column) => (
                  <th key={column} scope="col">
                    {visible(column)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {of.first.map((row, place) => (
                <tr key={place}>
                  {row.map((cell, at) => (
                    <td key={of.columns[at]}>
                      <span class="clip">{visible(cell)}</span>
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      ) : null}
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

interface Stored {
  tables: TableInfo[];
}

function Tables({ look }: { look: Read<Stored> }): JSX.Element {
  const { found } = look;
  return (
    <Reading title="Tables" look={look} kept note={found === null ? "" : `${found.tables.length} hold rows`}>
      {({ tables }) =>
        tables.length === 0 ? (
          <p class="empty">It holds no rows yet. Import the first file above.</p>
        ) : (
          <Table
            class="fold"
            label="Tables"
            rows={tables}
            keyOf={(each) => each.table}
            columns={[
              { title: "Table", names: true, class: "long", cell: (each) => visible(each.table) },
              { title: "Rows", class: "num", cell: (each) => counted(each.rows) },
              { title: "Oldest", class: "spare", cell: (each) => <Time at={each.oldest} none="no times" /> },
              { title: "Newest", class: "end", cell: (each) => <Time at={each.newest} none="no times" /> },
            ]}
          />
        )
      }
    </Reading>
  );
}
