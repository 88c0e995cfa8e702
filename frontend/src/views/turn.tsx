// One question and its answer: status while it is made, then text, tables, what it rests on and how it was found.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { behindLines, nameOf, plainText } from "../evidence.ts";
import { DataTable, Facts } from "../parts/data_table.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Elapsed, seconds, ToolList } from "../parts/tool_status.tsx";
import type { TurnView } from "../turn_view.ts";
import { shown, visible } from "../visible.ts";
import type { Evidence, EvidenceRow } from "../wire.ts";
import { Suggested } from "./chat.tsx";

const FIRST_EVIDENCE = 10;

export function TurnSection(props: {
  turn: TurnView;
  onStop: () => void;
  onAsk: (question: string) => void;
}): JSX.Element {
  const { turn } = props;
  const running = turn.state === "running";
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const place = useRef<HTMLElement>(null);
  const begunHere = useRef(running);
  useEffect(() => {
    // Who asked sees the question, and its answer from the start on, unless they went on to read elsewhere.
    if (begunHere.current && (running || document.activeElement instanceof HTMLTextAreaElement)) {
      place.current?.scrollIntoView({ block: "start" });
    }
  }, [running]);
  const lines = useMemo(
    () => (running ? null : behindLines(turn.tables, turn.evidence)),
    [running, turn.tables, turn.evidence],
  );
  const line = (cells: string[]): JSX.Element | null => {
    const number = lines?.get(cells);
    return number === undefined ? null : (
      <button type="button" onClick={() => setChosen({ number, title: `Line ${cells[0]?.trim()}` })}>
        {cells[0]}
      </button>
    );
  };
  return (
    <article
      ref={place}
      class={`turn ${turn.state}`}
      aria-busy={running}
      aria-label={`Question: ${visible(turn.question)}`}
    >
      <h2>{visible(turn.question)}</h2>
      {running ? (
        <p class="status row">
          <span>
            {turn.connected ? visible(turn.status) : "The connection is lost; trying again. The answer goes on."}{" "}
            <Elapsed since={turn.began} />
          </span>
          <button type="button" onClick={props.onStop} disabled={turn.turnId === ""}>
            Stop
          </button>
        </p>
      ) : null}
      <ToolList tools={turn.tools} since={turn.since} />
      <Markdown text={turn.text} />
      {turn.tables.map((table, place) => (
        <DataTable key={place} {...table} first={line} />
      ))}
      {turn.problem === "" ? null : <p class="refusal">{visible(turn.problem)}</p>}
      <EvidenceList
        evidence={turn.evidence}
        open={!running}
        onChoose={(number) => setChosen({ number, title: `Evidence ${number}` })}
      />
      {chosen === null ? null : <EvidenceDialog turnId={turn.turnId} {...chosen} onClose={() => setChosen(null)} />}
      {turn.footnote.length === 0 ? null : (
        <details>
          <summary>How this was found</summary>
          <ul>
            {turn.footnote.map((line) => (
              <li key={line}>{visible(line)}</li>
            ))}
          </ul>
        </details>
      )}
      <Suggested questions={turn.suggestions} onAsk={props.onAsk} />
    </article>
  );
}

/** A piece of evidence whose row is shown. */
interface Chosen {
  number: number;
  title: string;
}

function EvidenceList(props: {
  evidence: Evidence[];
  open: boolean;
  onChoose: (number: number) => void;
}): JSX.Element | null {
  const [all, setAll] = useState(false);
  if (props.evidence.length === 0) {
    return null;
  }
  const listed = all ? props.evidence : props.evidence.slice(0, FIRST_EVIDENCE);
  return (
    <section class="evidence" aria-label="Evidence">
      <h3>Evidence</h3>
      <ol>
        {listed.map((piece) => (
          <li key={piece.number} value={piece.number}>
            {nameOf(piece) === "" ? null : <span class="quiet">{visible(nameOf(piece))}: </span>}
            <button type="button" disabled={!props.open} onClick={() => props.onChoose(piece.number)}>
              {visible(plainText(piece)) || shown(piece.value)}
            </button>
          </li>
        ))}
      </ol>
      {listed.length < props.evidence.length ? (
        <button type="button" onClick={() => setAll(true)}>
          Show all {props.evidence.length}
        </button>
      ) : null}
    </section>
  );
}

function EvidenceDialog(props: Chosen & { turnId: string; onClose: () => void }): JSX.Element {
  const [found, setFound] = useState<EvidenceRow | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  useEffect(() => {
    ask<EvidenceRow>("GET", `/turns/${encodeURIComponent(props.turnId)}/evidence/${props.number}`).then(
      setFound,
      (error) => setRefusal(asRefusal(error)),
    );
  }, [props.turnId, props.number]);
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <RefusalNotice refusal={refusal} />
      {found === null ? null : (
        <>
          <p>{visible(found.text)}</p>
          <h3>The row, as far as the answer used it</h3>
          <Facts facts={Object.entries(found.row).map(([name, value]) => [name, shown(value)])} />
          <h3>The call it came from</h3>
          <Facts facts={callFacts(found)} />
        </>
      )}
    </Dialog>
  );
}

function callFacts(found: EvidenceRow): [string, string][] {
  const call = found.call;
  const facts: [string, string][] = [
    ["Tool", visible(found.tool)],
    ["Place in its result", visible(found.pointer)],
  ];
  if (call !== null) {
    facts.push(["Arguments", shown(call.arguments)], ["Took", seconds(call.duration_ms)]);
    facts.push(["Audit record", visible(call.audit_id) || "none"]);
    if (call.coverage?.query) {
      facts.push(["Query", visible(call.coverage.query)]);
    }
  }
  return facts;
}
