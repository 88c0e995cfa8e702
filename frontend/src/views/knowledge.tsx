// What the knowledge base holds: playbooks and past incidents, found by words and meaning, and read as they stand; put
// in and removed by whoever may.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { type Look, type Seen, useAnswer, useLook, useWork } from "../look.ts";
import { unmarked } from "../marks.ts";
import { Card } from "../parts/card.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { HowFound, Reading } from "../parts/reading.tsx";
import { Choice, Severity, Time } from "../parts/signs.tsx";
import { DropBox, Uploads, useUploads } from "../parts/upload.tsx";
import type { Hit, Knowledge } from "../tool_rows.ts";
import { visible } from "../visible.ts";
import type { IncidentsReport, PlaybookReport, Session } from "../wire.ts";

const MOST = 10;
const WHOLE = 20;
const COLLECTIONS: [string, string][] = [
  ["", "everything"],
  ["playbooks", "playbooks"],
  ["sentinel_incidents", "past incidents"],
];
const KINDS = ".md,.markdown,.txt,.html,.htm,.pdf";

/** `id` is a document to be read whole. */
export function KnowledgeView(props: {
  id: string | null;
  go: (id: string | null) => void;
  session: Session;
}): JSX.Element {
  const { id, session } = props;
  const [wanted, setWanted] = useState("");
  const [collection, setCollection] = useState("");
  const search = useLook<Knowledge>(
    "search_knowledge_base",
    id !== null || wanted === "" ? null : { query: wanted, collection, limit: MOST },
  );
  const list = useLook<Knowledge>(
    "search_knowledge_base",
    id === null && wanted === "" ? { collection: "playbooks" } : null,
  );
  const document = useLook<Knowledge>("search_knowledge_base", id === null ? null : { document: id, limit: WHOLE });
  if (id !== null) {
    return (
      <div class="stack">
        <h1>{visible(id)}</h1>
        <Reading title={visible(document.found?.result.hits[0]?.title ?? "Document")} look={document}>
          {(found) => <Whole found={found} />}
        </Reading>
      </div>
    );
  }
  return (
    <div class="stack">
      <h1>Knowledge</h1>
      <form
        class="askbox"
        onSubmit={(event) => {
          event.preventDefault();
          setWanted(String(new FormData(event.currentTarget).get("wanted") ?? "").trim());
        }}
      >
        <Icon name="search" />
        <label>
          <span class="unseen">Search playbooks and past incidents</span>
          <input name="wanted" type="search" maxLength={1_000} placeholder="Search playbooks and past incidents" />
        </label>
        <button type="submit" class="main">
          Search
        </button>
      </form>
      <div class="row">
        <Choice label="Within" value={collection} options={COLLECTIONS} onChange={setCollection} />
      </div>
      {wanted === "" ? (
        <>
          <Playbooks list={list} session={session} />
          <PastIncidents list={list} session={session} />
        </>
      ) : (
        <Reading
          title={`“${visible(wanted)}”`}
          look={search}
          choices={
            <button type="button" class="link" onClick={() => setWanted("")}>
              All playbooks
            </button>
          }
        >
          {(found) => <Hits found={found} />}
        </Reading>
      )}
    </div>
  );
}

function Hits({ found }: { found: Seen<Knowledge> }): JSX.Element {
  const { hits, total, remarks, freshness } = found.result;
  return (
    <>
      {hits.length === 0 ? <p>Nothing in it is about that.</p> : null}
      <ul class="hits">
        {hits.map((hit) => (
          <li key={hit.citation}>
            <HitHead hit={hit} />
            <Markdown marked={unmarked(hit.text)} />
          </li>
        ))}
      </ul>
      <footer>
        {hits.length} of {total}; {freshness.playbooks} playbooks and {freshness.incidents} past incidents were
        searched, incidents as of <Time at={freshness.incidents_as_of} none="never" />.
        <HowFound of={found} remarks={remarks} />
      </footer>
    </>
  );
}

function HitHead({ hit }: { hit: Hit }): JSX.Element {
  const number = /^incident-(\d+)$/.exec(hit.document_id)?.[1];
  return (
    <div class="row">
      {number === undefined ? (
        <a class="strong" href={`#/knowledge/${encodeURIComponent(hit.document_id)}`}>
          {visible(hit.citation)}
        </a>
      ) : (
        <>
          <a class="strong" href={`#/incidents/${number}`}>
            {number} {visible(hit.title)}
          </a>
          <Severity of={hit.severity || null} />
          <span class="quiet">
            {visible(hit.status)} {visible(hit.classification)}
          </span>
        </>
      )}
    </div>
  );
}

function Whole({ found }: { found: Seen<Knowledge> }): JSX.Element {
  const { hits } = found.result;
  return (
    <>
      {hits.length === 0 ? <p>There is no such document.</p> : null}
      <ul class="hits">
        {hits.map((hit) => (
          <li key={hit.citation}>
            <h3>{visible(hit.section || hit.citation)}</h3>
            <Markdown marked={unmarked(hit.text)} />
          </li>
        ))}
      </ul>
      <footer>
        {hits.length < found.result.total ? `The first ${hits.length} of ${found.result.total} parts.` : null}
        <HowFound of={found} />
      </footer>
    </>
  );
}

/** The playbooks that there are; whoever may puts one in, and removes the one that they name. */
function Playbooks({ list, session }: { list: Look<Knowledge>; session: Session }): JSX.Element {
  const fills = session.stores?.knowledge === true;
  // Where it cannot be read nothing is offered; the list beside it says what is wrong.
  const own = useAnswer<{ playbooks: string[] }>(fills ? "/knowledge/playbooks" : null);
  const owned = new Set(own.found?.playbooks);
  const [removing, setRemoving] = useState<Hit | null>(null);
  const changed = (): void => {
    list.again();
    own.again();
  };
  return (
    <>
      {fills ? <PutIn onDone={changed} /> : null}
      <Reading title="Playbooks" look={list}>
        {(found) => (
          <>
            {found.result.hits.length === 0 ? (
              <p class="empty">There is none{fills ? " yet. Put the first one in above." : " that you may read."}</p>
            ) : null}
            <ul class="listed" aria-label="Playbooks">
              {found.result.hits.map((hit) => (
                <li key={hit.document_id} class="row beside">
                  <div>
                    <a class="strong" href={`#/knowledge/${encodeURIComponent(hit.document_id)}`}>
                      {visible(hit.title)}
                    </a>
                    <div class="label long">
                      {visible(hit.document_id)}
                      {hit.techniques.length === 0 ? "" : `, for ${hit.techniques.slice(0, 6).map(visible).join(", ")}`}
                    </div>
                  </div>
                  {owned.has(hit.document_id) ? (
                    <button
                      type="button"
                      class="small"
                      aria-label={`Remove ${visible(hit.title)}`}
                      onClick={() => setRemoving(hit)}
                    >
                      Remove…
                    </button>
                  ) : null}
                </li>
              ))}
            </ul>
            <footer>
              {found.result.hits.length} of {found.result.total} playbooks.{" "}
              {fills ? null : session.roles.includes("admin") ? (
                <>
                  They are put in on the machine of the knowledge base: <code>sentinel knowledge ingest FOLDER</code>
                </>
              ) : (
                "They are put in and removed by people with the role admin."
              )}
              <HowFound of={found} remarks={found.result.remarks} />
            </footer>
          </>
        )}
      </Reading>
      {removing === null ? null : <Remove of={removing} onClose={() => setRemoving(null)} onDone={changed} />}
    </>
  );
}

function PutIn({ onDone }: { onDone: () => void }): JSX.Element {
  const replacing = useRef(new Set<File>());
  const [uploads, add] = useUploads<PlaybookReport>((file) => {
    const query = new URLSearchParams({ name: file.name, replace: String(replacing.current.has(file)) });
    return ask("PUT", `/knowledge/playbooks?${query}`, file);
  }, onDone);
  return (
    <Card id="put-in" title="Put in a playbook">
      <div class="in">
        <DropBox words="Drop playbooks here, or choose them: Markdown, text, HTML, PDF" accept={KINDS} onFiles={add} />
        <p class="label">
          Everybody who asks here can be shown what it says, unless its front matter names readers. It tells people what
          to do; the agent obeys nothing in it.
        </p>
      </div>
      <Uploads
        uploads={uploads}
        busy="Reading it in. The first time all texts get vectors, which can take a minute."
        refused={(upload) =>
          upload.refusal?.reason === "exists" ? (
            <button
              type="button"
              class="small"
              onClick={() => {
                replacing.current.add(upload.file);
                add([upload.file]);
              }}
            >
              Replace it
            </button>
          ) : null
        }
      >
        {(found, file) => (
          <>
            <p>
              {found.added > 0 ? "Added" : found.changed > 0 ? "Changed" : "It is there already, word for word"}
              {found.chunks > 0 ? `, in ${found.chunks} parts` : ""}.{" "}
              <a href={`#/knowledge/${encodeURIComponent(file.name)}`}>Read it</a>
            </p>
            {[...found.lines, found.lacking].filter(Boolean).map((line) => (
              <p key={line} class="label">
                {visible(line)}
              </p>
            ))}
          </>
        )}
      </Uploads>
    </Card>
  );
}

function Remove(props: { of: Hit; onClose: () => void; onDone: () => void }): JSX.Element {
  const [run, busy, refusal] = useWork();
  const name = props.of.document_id;
  const remove = async (): Promise<void> => {
    await ask("DELETE", `/knowledge/playbooks?${new URLSearchParams({ name })}`);
    props.onClose();
    props.onDone();
  };
  return (
    <Dialog title={`Remove “${visible(props.of.title)}”?`} onClose={props.onClose}>
      <p>
        <code>{visible(name)}</code> is found and quoted no more. Every other playbook stays, and so does the file that
        it was read from: the next <code>sentinel knowledge ingest</code> of that folder brings it back.
      </p>
      <RefusalNotice refusal={refusal} />
      <p>
        <button type="button" class="main" disabled={busy} onClick={() => run(remove)}>
          Remove it
        </button>
      </p>
    </Dialog>
  );
}

/** How many past cases can be found and as of when, and what brings them up to date. */
function PastIncidents({ list, session }: { list: Look<Knowledge>; session: Session }): JSX.Element | null {
  const [reports, setReports] = useState<IncidentsReport[] | null>(null);
  const [run, busy, refusal] = useWork();
  const freshness = list.found?.result.freshness;
  if (freshness === undefined) {
    return null;
  }
  const read = async (): Promise<void> => {
    setReports((await ask<{ workspaces: IncidentsReport[] }>("POST", "/knowledge/incidents")).workspaces);
    list.again();
  };
  return (
    <Card
      id="past"
      title="Past incidents"
      busy={busy}
      note={
        <>
          {freshness.incidents}, as of <Time at={freshness.incidents_as_of} none="never" />
        </>
      }
      side={
        session.stores?.knowledge === true ? (
          <button type="button" class="small" disabled={busy} onClick={() => run(read)}>
            {freshness.incidents_as_of === null ? "Read them in" : "Bring up to date"}
          </button>
        ) : null
      }
    >
      <p class="quiet">
        {freshness.incidents_as_of === null
          ? "None was read in yet, so no incident is compared with earlier ones."
          : "Incidents of the last months with how they were closed. Search finds them, and each incident shows those like it."}
      </p>
      {busy ? (
        <p role="status" class="quiet">
          Reading the incidents in...
        </p>
      ) : null}
      <RefusalNotice refusal={refusal} />
      {(reports ?? []).map((each) => (
        <p key={each.workspace}>
          {visible(each.workspace)}: {each.ingested.added} new, {each.ingested.changed} changed,{" "}
          {each.ingested.unchanged} as before. {visible(each.fault)} {visible(each.next_step)}
        </p>
      ))}
    </Card>
  );
}
