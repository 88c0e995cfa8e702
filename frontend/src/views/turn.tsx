// One question and its answer, the answer first: status while it is made, then its sentences, a chart where its rows are
// one, its tables, what a person is asked, and in one line how it was found.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { chartOf, shareOf } from "../charts.ts";
import { behindLines, linksOf, nameOf, plainText } from "../evidence.ts";
import { useWork } from "../look.ts";
import { counted, foldedAfter, foundAlone, type Marked, marked, type Note } from "../marks.ts";
import { Avatar, Suggested } from "../parts/around.tsx";
import { ChartOf, Share } from "../parts/chart.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { DataTable } from "../parts/data_table.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { KeepButton } from "../parts/saved.tsx";
import { Elapsed, ToolList } from "../parts/tool_status.tsx";
import { age } from "../times.ts";
import type { TurnView } from "../turn_view.ts";
import { shown, visible } from "../visible.ts";
import type { Approval, Evidence, Opinion, RequestState, Table, ToolTrace } from "../wire.ts";
import { Chip, type Opened } from "./evidence.tsx";
import { RequestCard } from "./request.tsx";

const FIRST_EVIDENCE = 10;
/** A longer answer shows its first lines, and the others folded behind what belongs to it. */
const LISTED = new Set(["alerts", "incidents"]);
const LEAD_LINES = 4;
const MOST_LINES = 6;

export interface TurnActions {
  /** Whether sentences that were not found are hidden. */
  foundAlone: boolean;
  onFoundAlone: (wanted: boolean) => void;
  onStop: () => void;
  onAsk: (question: string) => void;
  /** Put the words into the box, to be changed; where there is one. */
  onEdit?: (question: string) => void;
  onOpen: (opened: Opened) => void;
  onThought: (opinion: Opinion | null) => void;
}

export function TurnSection(
  props: {
    turn: TurnView;
    opened: Opened | null;
    /** What became of calls that were held back, by their audit record. */
    requests: Map<string, RequestState>;
    /** Whether that is known of all of them. */
    settled: boolean;
    waiting: Approval[];
    /** Who asked. */
    name: string;
    /** Whether it is the last one, whose numbered lines can be chosen. */
    newest: boolean;
    /** Whether it stands beside something else: nothing is scrolled to, and what is below the answer is left out. */
    brief?: boolean;
  } & TurnActions,
): JSX.Element {
  const { turn, opened, requests } = props;
  const running = turn.state === "running";
  const place = useRef<HTMLElement>(null);
  const begunHere = useRef(running);
  useEffect(() => {
    // Who asked sees the question, and its answer from the start on, unless they went on to read elsewhere.
    if (!props.brief && begunHere.current && (running || document.activeElement instanceof HTMLTextAreaElement)) {
      place.current?.scrollIntoView({ block: "start" });
    }
  }, [running]);
  const asked = turn.tools.filter((tool) => requests.has(tool.audit_id));
  const told = (tool: ToolTrace): boolean => tool.status === "failed" || (tool.status === "denied" && props.settled);
  const aside = turn.tools.filter((tool) => told(tool) && !requests.has(tool.audit_id));
  return (
    <article
      ref={place}
      tabIndex={-1}
      class={`turn ${turn.state}`}
      aria-busy={running}
      aria-label={`Question: ${visible(turn.question)}`}
    >
      <div class="asked">
        <Avatar name={props.name} />
        <h2>{visible(turn.question)}</h2>
        {props.onEdit === undefined ? null : (
          <button
            type="button"
            class="bare icon"
            aria-label="Edit the question"
            title="Edit and ask again"
            onClick={() => props.onEdit?.(turn.question)}
          >
            <Icon name="edit" />
          </button>
        )}
      </div>
      <div class="answer">
        {running ? (
          <p class="status row">
            <span class="quiet">
              {turn.connected ? visible(turn.status) : "The connection is lost; trying again. The answer goes on."}{" "}
              <Elapsed since={turn.began} />
            </span>
            <button type="button" class="small" onClick={props.onStop} disabled={turn.turnId === ""}>
              Stop
            </button>
          </p>
        ) : null}
        <ToolList tools={running ? turn.tools : aside} since={turn.since} />
        {asked.map((tool) => (
          <RequestCard
            key={tool.call_id}
            tool={tool}
            state={requests.get(tool.audit_id) as RequestState}
            approval={props.waiting.find((each) => each.approval_id === requests.get(tool.audit_id)?.approval_id)}
            onAsk={props.onAsk}
            question={turn.question}
          />
        ))}
        <Body {...props} opened={opened} held={asked.length > 0} />
        {turn.problem === "" ? null : <p class="refusal">{visible(turn.problem)}</p>}
        {running || props.brief ? null : <Foot {...props} />}
        {props.brief ? null : <Suggested questions={turn.suggestions} onAsk={props.onAsk} />}
        {props.newest ? (
          <Suggested questions={optionsOf(turn)} onAsk={(option) => props.onAsk(OPTION.exec(option)?.[1] ?? option)} />
        ) : null}
      </div>
    </article>
  );
}

const OPTION = /^\[(\d{1,2})\] \S/;

/** The numbered lines of a question that was asked back: nothing in it rests on a row. */
function optionsOf(turn: TurnView): string[] {
  const asked = turn.state === "answered" && turn.evidence.length === 0 && turn.suggestions.length === 0;
  return asked ? turn.text.split("\n").filter((line) => OPTION.test(line)) : [];
}

/** Sentences, chart and tables; `held` where they only say that somebody is asked, which stands above. */
function Body(props: { turn: TurnView; opened: Opened | null; held: boolean } & TurnActions): JSX.Element {
  const { turn, opened } = props;
  const answer = useMemo(() => shownText(turn, props.foundAlone), [turn, props.foundAlone]);
  const folded = useMemo(
    () => (turn.state === "answered" ? foldedAfter(answer, LEAD_LINES, MOST_LINES) : null),
    [answer, turn.state],
  );
  const chip = (note: Note): JSX.Element => (
    <Chip
      note={note}
      pressed={opened?.turn === turn.key && opened.sentence === note.sentence.start}
      onOpen={() => props.onOpen({ turn: turn.key, sentence: note.sentence.start })}
    />
  );
  if (props.held && turn.state === "answered") {
    return (
      <details>
        <summary>What the agent said</summary>
        <Markdown class="rest" marked={answer} chip={chip} />
      </details>
    );
  }
  return (
    <>
      {turn.text === "" ? null : <Markdown marked={folded?.[0] ?? answer} chip={chip} />}
      <Figures {...props} />
      {folded === null ? null : (
        <details class="more">
          <summary>
            {folded[2]} more lines: {folded[1].text.split("\n")[0]?.slice(0, 60)}…
          </summary>
          <Markdown class="rest" marked={folded[1]} chip={chip} />
        </details>
      )}
    </>
  );
}

/** The tables of an answer, each with the chart that its rows are. */
function Figures({ turn, onOpen, onAsk }: { turn: TurnView } & TurnActions): JSX.Element {
  const running = turn.state === "running";
  const lines = useMemo(
    () => (running ? null : behindLines(turn.tables, turn.evidence)),
    [running, turn.tables, turn.evidence],
  );
  const links = useMemo(() => linksOf(turn.evidence), [turn.evidence]);
  const share = useMemo(() => (running ? null : shareOf(turn.evidence)), [running, turn.evidence]);
  const first = (cells: string[]): JSX.Element | null => {
    const number = lines?.get(cells);
    const title = `Line ${cells[0]?.trim()}`;
    return number === undefined ? null : (
      <button type="button" class="source" onClick={() => onOpen({ turn: turn.key, piece: { number, title } })}>
        {cells[0]}
      </button>
    );
  };
  return (
    <>
      {turn.tables.map((table, place) => (
        <Figure
          key={place}
          table={table}
          first={first}
          link={(cell) => links.get(cell) ?? personOf(cell)}
          onPick={rowsOf(table, onAsk)}
          share={place === 0 ? share : null}
        />
      ))}
    </>
  );
}

const PERSON = /^[\w.'+-]+@[\w.-]+$/;

/** The way to a person whose address is a cell of a stored query. */
function personOf(cell: string): string | undefined {
  return PERSON.test(cell) ? `#/entity/${encodeURIComponent(cell)}` : undefined;
}

/** How to ask for the rows of one column, where a table counts what a list shows. */
function rowsOf(
  table: Table,
  onAsk: (question: string) => void,
): ((from: string, to: string | null) => void) | undefined {
  const counted = table.columns.map((each) => each.toLowerCase()).find((each) => LISTED.has(each));
  return counted === undefined ? undefined : (from, to) => onAsk(`Show the ${counted} from ${from} to ${to ?? "now"}`);
}

function Figure(props: {
  table: Table;
  first: (cells: string[]) => JSX.Element | null;
  link: (cell: string) => string | undefined;
  onPick: ((from: string, to: string | null) => void) | undefined;
  share: ReturnType<typeof shareOf>;
}): JSX.Element {
  const { table, share } = props;
  const [measure, setMeasure] = useState("");
  const chart = useMemo(() => chartOf(table, measure), [table, measure]);
  const [drawn, setDrawn] = useState(true);
  const title = table.title || chart?.title || "Rows";
  return (
    <section class="card figure" aria-label={`${visible(title)}: figure`}>
      <header>
        <h3>{visible(title)}</h3>
        <span class="label">{table.rows.length}</span>
        <div class="push">
          {chart !== null && drawn && chart.measures.length > 1 ? (
            <select
              aria-label="What is drawn"
              value={measure || chart.measures[0]}
              onChange={(event) => setMeasure(event.currentTarget.value)}
            >
              {chart.measures.map((name) => (
                <option key={name} value={name}>
                  {visible(name)}
                </option>
              ))}
            </select>
          ) : null}
          {chart === null ? null : (
            <button type="button" class="link" aria-pressed={drawn} onClick={() => setDrawn(!drawn)}>
              {drawn ? "As a table" : "As a chart"}
            </button>
          )}
          <CopyButton text={asText(table)} what="the rows" />
        </div>
      </header>
      {chart === null && share !== null ? (
        <div class="in">
          <Share title={title} parts={share} />
        </div>
      ) : null}
      {chart !== null && drawn ? (
        <div class="in">
          <ChartOf chart={{ ...chart, title }} link={props.link} onPick={props.onPick} />
        </div>
      ) : (
        <DataTable {...table} title={title} first={props.first} link={props.link} />
      )}
    </section>
  );
}

function asText(table: Table): string {
  return [table.columns, ...table.rows]
    .map((row) => row.map((cell) => cell.replaceAll(/[\t\n]/g, " ")).join("\t"))
    .join("\n");
}

/** What was compared, what can be done with the answer, and how it was found, each in a line. */
function Foot(props: { turn: TurnView; name: string } & TurnActions): JSX.Element {
  const { turn } = props;
  const hidden = props.foundAlone ? foundAlone(turn.text, turn.sentences).hidden : 0;
  return (
    <>
      <div class="checked">
        {turn.sentences.length === 0 ? null : (
          <>
            <span>{counted(turn.sentences)}</span>
            <label class="tick">
              <input
                type="checkbox"
                checked={props.foundAlone}
                onChange={(event) => props.onFoundAlone(event.currentTarget.checked)}
              />
              Show only what was found{hidden === 0 ? "" : ` (${hidden} hidden)`}
            </label>
          </>
        )}
        <span class="push">
          {turn.text === "" ? null : <CopyButton text={turn.text} what="the answer" />}
          <button type="button" class="bare small" onClick={() => props.onAsk(turn.question)}>
            <Icon name="again" />
            Ask again
          </button>
          <KeepButton name={props.name} question={turn.question} />
          {turn.state === "answered" ? <Thumbs turn={turn} onThought={props.onThought} /> : null}
        </span>
      </div>
      <Provenance {...props} />
    </>
  );
}

/** One line on where the answer comes from; opened, its calls, its evidence, and what it was found by. */
function Provenance({ turn, onOpen }: { turn: TurnView } & TurnActions): JSX.Element | null {
  const evidence = besideSentences(turn);
  if (turn.tools.length === 0 && turn.footnote.length === 0 && evidence.length === 0) {
    return null;
  }
  return (
    <details class="provenance">
      <summary>{provenanceOf(turn.tools) || "How this was found"}</summary>
      <ToolList tools={turn.tools.filter((tool) => tool.status === "ok")} since={turn.since} />
      {turn.footnote.length === 0 ? null : (
        <ul>
          {turn.footnote.map((line) => (
            <li key={line}>{visible(line)}</li>
          ))}
        </ul>
      )}
      <EvidenceList
        evidence={evidence}
        onChoose={(number) => onOpen({ turn: turn.key, piece: { number, title: `Evidence ${number}` } })}
      />
    </details>
  );
}

function provenanceOf(tools: ToolTrace[]): string {
  const covered = tools.flatMap((tool) => (tool.coverage === null ? [] : [tool.coverage]));
  const rows = covered.reduce((sum, each) => sum + each.rows_returned, 0);
  const total = covered.reduce<number | null>(
    (sum, each) => (sum === null || each.rows_total === null ? null : sum + each.rows_total),
    0,
  );
  const newest = covered.map((each) => Date.parse(each.table_newest ?? "")).filter((time) => !Number.isNaN(time));
  const old = newest.length === 0 ? null : (Date.now() - Math.max(...newest)) / 1_000;
  const whole = covered.every((each) => each.window.start === null && each.window.end === null);
  return [
    tools.length === 0 ? "" : `${tools.length} ${tools.length === 1 ? "call" : "calls"}`,
    covered.length === 0 ? "" : `${rows} of ${total ?? "an unknown number of"} rows`,
    covered.length > 0 && whole ? "all retained data" : "",
    covered.some((each) => each.partial) ? "partial" : "",
    old === null ? "" : `newest row ${age(old)} old`,
  ]
    .filter((each) => each !== "")
    .join(" · ");
}

/** The evidence that no sentence opens: the cells of tables. */
function besideSentences(turn: TurnView): Evidence[] {
  const marks = turn.sentences.flatMap((sentence) => sentence.marks.filter((mark) => mark.found));
  const told = new Set(marks.map((mark) => `${mark.call_id} ${mark.pointer}`));
  return turn.evidence.filter((piece) => !told.has(`${piece.call_id} ${piece.pointer}`));
}

/** The text as it is shown. While it is written, what was not compared yet is
 * kept back from who wants to see what was found alone. */
function shownText(turn: TurnView, alone: boolean): Marked {
  if (!alone) {
    return marked(turn.text, turn.sentences);
  }
  const compared = Math.max(0, ...turn.sentences.map((sentence) => sentence.end));
  const text = turn.state === "running" ? [...turn.text].slice(0, compared).join("") : turn.text;
  const left = foundAlone(text, turn.sentences);
  return marked(left.text, left.sentences);
}

function EvidenceList(props: { evidence: Evidence[]; onChoose: (number: number) => void }): JSX.Element | null {
  const [all, setAll] = useState(false);
  if (props.evidence.length === 0) {
    return null;
  }
  const listed = all ? props.evidence : props.evidence.slice(0, FIRST_EVIDENCE);
  return (
    <section class="evidence" aria-label="Evidence">
      <h3>Values beside the sentences</h3>
      <ol class="row">
        {listed.map((piece) => (
          <li key={piece.number} value={piece.number}>
            {nameOf(piece) === "" ? null : <span class="quiet">{visible(nameOf(piece))}: </span>}
            <button type="button" class="small" onClick={() => props.onChoose(piece.number)}>
              {visible(plainText(piece)) || shown(piece.value)}
            </button>
          </li>
        ))}
      </ol>
      {listed.length < props.evidence.length ? (
        <button type="button" class="link" onClick={() => setAll(true)}>
          Show all {props.evidence.length}
        </button>
      ) : null}
    </section>
  );
}

const REASONS = ["Wrong", "Did not answer it", "Too long", "Something was missing"];

/** Whether the answer helped, and why not; kept with the turn. */
function Thumbs(props: { turn: TurnView; onThought: (opinion: Opinion | null) => void }): JSX.Element {
  const { turn, onThought } = props;
  const [asks, setAsks] = useState(false);
  const [run, , refusal] = useWork();
  const keep = (opinion: Opinion | null): void =>
    run(async () => {
      const path = `/turns/${encodeURIComponent(turn.turnId)}/opinion`;
      await (opinion === null ? ask("DELETE", path) : ask("PUT", path, opinion));
      onThought(opinion);
      setAsks(false);
    });
  const thought = turn.opinion;
  return (
    <>
      <button
        type="button"
        class="bare small"
        aria-label="This helped"
        aria-pressed={thought?.good === true}
        onClick={() => keep(thought?.good === true ? null : { good: true, reason: "" })}
      >
        <Icon name="up" />
        {thought?.good === true ? "Helped" : ""}
      </button>
      <button
        type="button"
        class="bare small"
        aria-label="This did not help"
        aria-pressed={thought?.good === false}
        onClick={() => (thought?.good === false ? keep(null) : setAsks(true))}
      >
        <Icon name="down" />
        {thought?.good === false ? visible(thought.reason) || "Did not help" : ""}
      </button>
      {asks ? null : <RefusalNotice refusal={refusal} />}
      {asks ? (
        <Dialog title="What was wrong with it?" onClose={() => setAsks(false)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const given = new FormData(event.currentTarget);
              const words = [given.get("reason"), given.get("words")].map((each) => String(each ?? "").trim());
              keep({ good: false, reason: words.filter((each) => each !== "").join(": ") });
            }}
          >
            <fieldset>
              <legend class="unseen">Reason</legend>
              {REASONS.map((reason) => (
                <label key={reason} class="tick">
                  <input type="radio" name="reason" value={reason} />
                  {reason}
                </label>
              ))}
            </fieldset>
            <label>
              In your words <span class="quiet">(kept with this answer)</span>
              <input name="words" maxLength={500} />
            </label>
            <RefusalNotice refusal={refusal} />
            <button type="submit" class="main">
              Keep it
            </button>
          </form>
        </Dialog>
      ) : null}
    </>
  );
}
