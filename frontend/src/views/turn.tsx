// One question and its answer: status while it is made, then text, tables, what it rests on and how it was found.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { behindLines, callFacts, nameOf, plainText } from "../evidence.ts";
import { counted, foundAlone, marked, type Note } from "../marks.ts";
import { DataTable, Facts } from "../parts/data_table.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Elapsed, ToolList } from "../parts/tool_status.tsx";
import type { TurnView } from "../turn_view.ts";
import { shown, visible } from "../visible.ts";
import type { Evidence, EvidenceRow, Sentence } from "../wire.ts";
import { Suggested } from "./chat.tsx";
import { Chip, SentenceDrawer } from "./sentence.tsx";

const FIRST_EVIDENCE = 10;

export function TurnSection(props: {
  turn: TurnView;
  /** Whether sentences that were not found are hidden. */
  foundAlone: boolean;
  onFoundAlone: (wanted: boolean) => void;
  onStop: () => void;
  onAsk: (question: string) => void;
}): JSX.Element {
  const { turn } = props;
  const running = turn.state === "running";
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [opened, setOpened] = useState<Sentence | null>(null);
  const answer = useMemo(() => shownText(turn, props.foundAlone), [turn, props.foundAlone]);
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
      <Markdown
        marked={answer.marked}
        chip={(note: Note) => <Chip note={note} onOpen={() => setOpened(note.sentence)} />}
      />
      {turn.tables.map((table, place) => (
        <DataTable key={place} {...table} first={line} />
      ))}
      {running || turn.sentences.length === 0 ? null : (
        <p class="counted row">
          <span>{counted(turn.sentences)}</span>
          <label class="tick">
            <input
              type="checkbox"
              checked={props.foundAlone}
              onChange={(event) => props.onFoundAlone(event.currentTarget.checked)}
            />
            Show only what was found{answer.hidden === 0 ? "" : ` (${answer.hidden} hidden)`}
          </label>
        </p>
      )}
      {opened === null ? null : <SentenceDrawer turn={turn} sentence={opened} onClose={() => setOpened(null)} />}
      {turn.problem === "" ? null : <p class="refusal">{visible(turn.problem)}</p>}
      <EvidenceList
        evidence={besideSentences(turn)}
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

/** The evidence that no sentence opens: the cells of tables. */
function besideSentences(turn: TurnView): Evidence[] {
  const marks = turn.sentences.flatMap((sentence) => sentence.marks.filter((mark) => mark.found));
  const told = new Set(marks.map((mark) => `${mark.call_id} ${mark.pointer}`));
  return turn.evidence.filter((piece) => !told.has(`${piece.call_id} ${piece.pointer}`));
}

/** The text as it is shown, and how many of its sentences are hidden. While it is written, what was not compared yet is
 * kept back from who wants to see what was found alone. */
function shownText(turn: TurnView, alone: boolean): { marked: ReturnType<typeof marked>; hidden: number } {
  if (!alone) {
    return { marked: marked(turn.text, turn.sentences), hidden: 0 };
  }
  const compared = Math.max(0, ...turn.sentences.map((sentence) => sentence.end));
  const text = turn.state === "running" ? [...turn.text].slice(0, compared).join("") : turn.text;
  const left = foundAlone(text, turn.sentences);
  return { marked: marked(left.text, left.sentences), hidden: left.hidden };
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
          <Facts
            facts={[
              ["Tool", visible(found.tool)],
              ["Place in its result", visible(found.pointer)],
              ...(found.call === null ? [] : callFacts(found.call)),
            ]}
          />
        </>
      )}
    </Dialog>
  );
}
