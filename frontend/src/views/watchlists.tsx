// The watchlists of an embedded workspace: lists from CSV files that queries compare rows with.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask } from "../api.ts";
import { useAnswer, useWork } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { State } from "../parts/reading.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { Time } from "../parts/signs.tsx";
import { Table } from "../parts/table.tsx";
import { DropBox, Uploads, useUploads } from "../parts/upload.tsx";
import { counted } from "../times.ts";
import { visible } from "../visible.ts";

interface Rows {
  columns: string[];
  rows: Record<string, unknown>[];
  partial: boolean;
}

/** Lists to compare rows with: those that there are, the items of one, and what puts one in or takes it out. */
export function Watchlists({ workspace }: { workspace: string }): JSX.Element {
  const [alias, setAlias] = useState("");
  const [key, setKey] = useState("");
  const [leaving, setLeaving] = useState("");
  const of = (more: Record<string, string>): string =>
    `/data/watchlists?${new URLSearchParams({ workspace, ...more })}`;
  const lists = useAnswer<Rows>(of({}));
  const { found, again } = lists;
  const [run, , refusal] = useWork();
  const send = (file: File, replace: boolean): Promise<{ alias: string; items: number }> => {
    const named = alias === "" ? aliasOf(file.name) : alias;
    const more = { ...(key === "" ? {} : { key }), ...(replace ? { replace: "true" } : {}) };
    return ask("PUT", of({ alias: named, name: file.name, ...more }), file);
  };
  const [uploads, add] = useUploads((file) => send(file, false), again);
  const remove = (name: string): void => {
    setLeaving("");
    run(() => ask("DELETE", of({ alias: name })).then(again));
  };
  return (
    <Card
      id="watchlists"
      busy={lists.busy}
      title="Watchlists"
      note={found === null ? "" : `${found.rows.length} in ${visible(workspace)}`}
    >
      <State of={lists} shown={found !== null} />
      <RefusalNotice refusal={refusal} />
      <div class="in">
        <div class="filters">
          <div class="choice">
            <label for="alias">Alias (optional)</label>
            <input
              id="alias"
              placeholder="the name of the file"
              value={alias}
              maxLength={64}
              pattern="[A-Za-z0-9][A-Za-z0-9_\-]*"
              onInput={(event) => setAlias(event.currentTarget.value.trim())}
            />
          </div>
          <div class="choice">
            <label for="search-key">Search key (optional)</label>
            <input
              id="search-key"
              placeholder="the first column"
              value={key}
              maxLength={200}
              onInput={(event) => setKey(event.currentTarget.value)}
            />
          </div>
        </div>
        <DropBox
          words="Drop a list here, or choose it: CSV, its first line names the columns"
          accept=".csv"
          onFiles={add}
        />
        <p class="label">
          <code>SearchKey</code> is the column that joins use. The KQL below a list gives its keys, for{" "}
          <code>where Account in ((...))</code>.
        </p>
      </div>
      <Uploads
        uploads={uploads}
        busy="Putting it in..."
        refused={({ file, refusal: why }) =>
          why?.reason === "exists" ? <Replacing send={() => send(file, true)} done={again} /> : null
        }
      >
        {(made) => (
          <p>
            <strong>{counted(made.items)}</strong> items in <strong>{visible(made.alias)}</strong>.
          </p>
        )}
      </Uploads>
      {found?.rows.length === 0 ? <p class="empty">There is no watchlist here yet.</p> : null}
      <ul class="listed" aria-label="Watchlists">
        {found?.rows.map((row) => {
          const name = String(row.Alias);
          return (
            <li key={name}>
              <div class="row between">
                <span class="long">
                  <strong>{visible(name)}</strong>{" "}
                  <span class="quiet">
                    {counted(Number(row.Items))} items of {visible(String(row.Source))},{" "}
                    <Time short at={String(row.Updated)} />
                  </span>
                </span>
                {leaving === name ? (
                  <span class="row">
                    <button type="button" onClick={() => remove(name)}>
                      Remove {visible(name)}
                    </button>
                    <button type="button" class="link" onClick={() => setLeaving("")}>
                      Keep it
                    </button>
                  </span>
                ) : (
                  <button type="button" class="link" onClick={() => setLeaving(name)}>
                    Remove
                  </button>
                )}
              </div>
              <p class="row">
                <code>{visible(keysOf(name))}</code>
                <CopyButton text={keysOf(name)} what={`the KQL of ${visible(name)}`} />
              </p>
              <Items key={String(row.Updated)} path={of({ alias: name })} name={name} />
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

function Replacing(props: { send: () => Promise<unknown>; done: () => void }): JSX.Element {
  const [told, setTold] = useState("");
  const [run, , refusal] = useWork();
  const replace = async (): Promise<void> => {
    await props.send();
    setTold("It is replaced.");
    props.done();
  };
  return told === "" ? (
    <>
      <RefusalNotice refusal={refusal} />
      <button type="button" onClick={() => run(replace)}>
        Replace it
      </button>
    </>
  ) : (
    <p role="status">{told}</p>
  );
}

const OWN = new Set(["_DTItemId", "LastUpdatedTimeUTC"]);

/** The items of one list, read when they are opened. */
function Items(props: { path: string; name: string }): JSX.Element {
  const [open, setOpen] = useState(false);
  const items = useAnswer<Rows>(open ? props.path : null);
  const { found } = items;
  const columns = (found?.columns ?? []).filter((name) => !OWN.has(name));
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Items</summary>
      <State of={items} />
      {found === null ? null : (
        <>
          <Scroll label={`Items of ${visible(props.name)}`}>
            <Table
              rows={found.rows}
              keyOf={(row) => String(row._DTItemId)}
              columns={columns.map((name) => ({
                title: visible(name),
                cell: (row: Rows["rows"][number]) => visible(String(row[name] ?? "")),
              }))}
            />
          </Scroll>
          {found.partial ? <p class="label">The first {found.rows.length} items.</p> : null}
        </>
      )}
    </details>
  );
}

/** KQL of the keys of a list, in a form that the guard of queries knows. */
function keysOf(alias: string): string {
  return `Watchlist | where WatchlistAlias == '${alias}' | project SearchKey`;
}

/** The name of a file as an alias: what an alias cannot hold is left out. */
function aliasOf(file: string): string {
  return file
    .replace(/\.[^.]*$/, "")
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^[-_]+/, "")
    .slice(0, 64);
}
