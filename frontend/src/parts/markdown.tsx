// The Markdown of answers: paragraphs, headings, lists, quotes, tables, code, bold and italic, and nothing else. HTML,
// images and links are text as they stand, so that an answer loads nothing; an address in it asks before it is opened.
// Each piece knows its place in the text, so that marks of the check find theirs; an address is never cut by one.

import type { ComponentChildren, JSX } from "preact";
import { documentLink } from "../links.ts";
import type { Marked, Note, Span } from "../marks.ts";
import { Address, addressesIn } from "./linked.tsx";
import { Scroll } from "./scroll.tsx";

/** A line, or a cell, with its place in the text. */
interface Line {
  text: string;
  at: number;
}

type Block =
  | { kind: "code"; lines: Line[]; end: number }
  | { kind: "heading"; level: number; lines: Line[] }
  | { kind: "list"; ordered: boolean; start: number; lines: Line[] }
  | { kind: "table"; head: Line[]; rows: Line[][] }
  | { kind: "quote" | "paragraph"; lines: Line[] };

/** A link to a document beside the one that is read. */
const BESIDE = /^\[([^\]\n]+)\]\(([\w.-]+\.md)\)$/;

/** `chip` draws a note where it stands. */
export function Markdown(props: {
  marked: Marked;
  class?: string;
  chip?: (note: Note) => ComponentChildren;
}): JSX.Element {
  const setting = new Setting(props.marked, props.chip ?? (() => null));
  return <div class={`markdown ${props.class ?? ""}`}>{setting.all()}</div>;
}

class Setting {
  private told = 0;

  constructor(
    private readonly marked: Marked,
    private readonly chip: (note: Note) => ComponentChildren,
  ) {}

  /** Every block, and behind the last one what none of them held. */
  all(): ComponentChildren[] {
    const blocks = blocksOf(linesOf(this.marked.text));
    return [...blocks.map((block) => this.block(block)), ...this.due(this.marked.text.length)];
  }

  private block(block: Block): ComponentChildren {
    switch (block.kind) {
      case "code": {
        const code = (
          <pre>
            <code>{block.lines.map((line) => line.text).join("\n")}</code>
          </pre>
        );
        return [code, ...this.due(block.end)];
      }
      case "heading":
        // Below the page's own headings, whatever level the answer chose.
        return block.level < 3 ? <h3>{this.lines(block.lines)}</h3> : <h4>{this.lines(block.lines)}</h4>;
      case "list": {
        const items = block.lines.map((item) => <li key={item.at}>{this.lines([item])}</li>);
        return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
      }
      case "table":
        return this.table(block.head, block.rows);
      case "quote":
        return <blockquote>{blocksOf(block.lines).map((inner) => this.block(inner))}</blockquote>;
      case "paragraph":
        return <p>{this.lines(block.lines)}</p>;
    }
  }

  private table(head: Line[], rows: Line[][]): JSX.Element {
    return (
      <Scroll label="Table">
        <table>
          <thead>
            <tr>
              {head.map((cell) => (
                <th key={cell.at} scope="col">
                  {this.cell(cell)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row[0]?.at}>
                {row.map((cell) => (
                  <td key={cell.at}>{this.cell(cell)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    );
  }

  /** A cell with what stands in it; the last one of a row holds what stands behind the row. */
  private cell(cell: Line): ComponentChildren[] {
    const border = this.marked.text.indexOf("|", cell.at + cell.text.length);
    const newline = this.marked.text.indexOf("\n", cell.at);
    const end = newline < 0 ? this.marked.text.length : newline;
    const last = border < 0 || border >= end || this.marked.text.slice(border + 1, end).trim() === "";
    return [...this.inline(cell), ...this.due(last ? end : border)];
  }

  private lines(lines: Line[]): ComponentChildren[] {
    return lines.flatMap((line, place) => [
      place === 0 ? "" : "\n",
      ...this.inline(line),
      ...this.due(line.at + line.text.length),
    ]);
  }

  private inline(line: Line): ComponentChildren[] {
    let at = line.at;
    return line.text.split(MARKS).map((piece) => {
      const start = at;
      at += piece.length;
      if (piece.length > 2 && piece.startsWith("`") && piece.endsWith("`")) {
        return <code>{this.cut(piece.slice(1, -1), start + 1)}</code>;
      }
      if (piece.length > 4 && piece.startsWith("**") && piece.endsWith("**")) {
        return <strong>{this.leaf(piece.slice(2, -2), start + 2)}</strong>;
      }
      if (piece.length > 2 && piece.startsWith("*") && piece.endsWith("*")) {
        return <em>{this.leaf(piece.slice(1, -1), start + 1)}</em>;
      }
      const [, words = "", file = ""] = BESIDE.exec(piece) ?? [];
      return file === "" ? this.leaf(piece, start) : <a href={documentLink(file)}>{this.cut(words, start + 1)}</a>;
    });
  }

  private leaf(text: string, at: number): ComponentChildren[] {
    let place = at;
    return addressesIn(text).map((piece) => {
      const start = place;
      place += piece.text.length;
      if (piece.host === null) {
        return this.cut(piece.text, start);
      }
      const address = <Address address={piece.text} host={piece.host} />;
      const [span] = this.within(start, place);
      return [...this.due(start), span === undefined ? address : <u class={span.seen}>{address}</u>];
    });
  }

  /** A text cut where spans and notes stand. */
  private cut(text: string, at: number): ComponentChildren[] {
    const parts: ComponentChildren[] = [];
    const end = at + text.length;
    const spans = this.within(at, end);
    for (let place = at; place < end; ) {
      parts.push(...this.due(place));
      const span = spans.find((each) => each.end > place);
      const inside = span !== undefined && span.start <= place;
      const edge = inside ? span.end : (span?.start ?? end);
      const until = Math.min(edge, this.marked.notes[this.told]?.at ?? end, end);
      const said = this.marked.text.slice(place, until);
      parts.push(inside ? underlined(span, said) : said);
      place = until;
    }
    return parts;
  }

  private within(start: number, end: number): Span[] {
    return this.marked.spans.filter((span) => span.end > start && span.start < end);
  }

  private due(until: number): ComponentChildren[] {
    const chips: ComponentChildren[] = [];
    for (let note = this.marked.notes[this.told]; note !== undefined && note.at <= until; ) {
      chips.push(this.chip(note));
      this.told += 1;
      note = this.marked.notes[this.told];
    }
    return chips;
  }
}

function underlined(span: Span, said: string): JSX.Element {
  return <u class={span.seen}>{span.href === undefined ? said : <a href={span.href}>{said}</a>}</u>;
}

const HEADING = /^(#{1,6}\s+)(.*)$/;
const ITEM = /^(\s*(?:[-*+]|(\d{1,9})[.)])\s+)(.*)$/;
const FENCE = /^\s*```/;
const RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

function linesOf(text: string): Line[] {
  let place = 0;
  return text.split("\n").map((line) => {
    const at = place;
    place += line.length + 1;
    return { text: line, at };
  });
}

function blocksOf(lines: Line[]): Block[] {
  const blocks: Block[] = [];
  let open = false; // whether the last block may go on
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as Line;
    const heading = HEADING.exec(line.text);
    const item = ITEM.exec(line.text);
    const last = open ? blocks.at(-1) : undefined;
    const table = tableAt(lines, at);
    open = true;
    if (FENCE.test(line.text)) {
      const named = line.text.replace(/^\s*`+\s*/, "");
      const code: Line[] = named === "" ? [] : [{ text: named, at: line.at }];
      for (at += 1; at < lines.length && !FENCE.test(lines[at]?.text ?? ""); at += 1) {
        code.push(lines[at] as Line);
      }
      const end = lines[Math.min(at, lines.length - 1)] as Line;
      blocks.push({ kind: "code", lines: code, end: end.at + end.text.length });
      open = false;
    } else if (line.text.trim() === "") {
      open = false;
    } else if (table !== null) {
      blocks.push(table);
      at += table.rows.length + 1;
      open = false;
    } else if (heading !== null) {
      const [, mark = "", words = ""] = heading;
      blocks.push({ kind: "heading", level: mark.trim().length, lines: [{ text: words, at: line.at + mark.length }] });
      open = false;
    } else if (item !== null) {
      const [, mark = "", number, words = ""] = item;
      const said = { text: words, at: line.at + mark.length };
      const ordered = number !== undefined;
      if (last?.kind === "list" && last.ordered === ordered) {
        last.lines.push(said);
      } else {
        blocks.push({ kind: "list", ordered, start: Number(number ?? 1), lines: [said] });
      }
    } else if (line.text.startsWith(">")) {
      const words = line.text.replace(/^>\s?/, "");
      const said = { text: words, at: line.at + line.text.length - words.length };
      if (last?.kind === "quote") {
        last.lines.push(said);
      } else {
        blocks.push({ kind: "quote", lines: [said] });
      }
    } else if (last?.kind === "list" && /^\s+\S/.test(line.text) && goesOn(last.lines.at(-1), line)) {
      // An item goes on in an indented line; the text between keeps its places.
      (last.lines.at(-1) as Line).text += `\n${line.text}`;
    } else if (last?.kind === "paragraph") {
      last.lines.push(line);
    } else {
      blocks.push({ kind: "paragraph", lines: [line] });
    }
  }
  return blocks;
}

/** Whether nothing but a new line stands between the two: within a quotation its sign does. */
function goesOn(before: Line | undefined, line: Line): boolean {
  return before !== undefined && before.at + before.text.length + 1 === line.at;
}

/** The table that begins at a line. With a row of more cells than its head it is none: what stands in them must show. */
function tableAt(lines: Line[], at: number): { kind: "table"; head: Line[]; rows: Line[][] } | null {
  const [first, rule] = [lines[at], lines[at + 1]];
  if (first === undefined || rule === undefined || !first.text.includes("|") || !RULE.test(rule.text)) {
    return null;
  }
  const head = cellsOf(first);
  const rows: Line[][] = [];
  for (const line of lines.slice(at + 2)) {
    if (line.text.trim() === "" || !line.text.includes("|")) {
      break;
    }
    rows.push(cellsOf(line));
  }
  return cellsOf(rule).length === head.length && rows.every((row) => row.length <= head.length)
    ? { kind: "table", head, rows }
    : null;
}

function cellsOf(line: Line): Line[] {
  const cells: Line[] = [];
  const row = line.text.trimEnd();
  const inner = row.replace(/^\s*\|/, "");
  let at = line.at + row.length - inner.length;
  for (const cell of inner.replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/)) {
    cells.push({ text: cell.trim(), at: at + cell.length - cell.trimStart().length });
    at += cell.length + 1;
  }
  return cells;
}

const MARKS = /(`[^`\n]+`|\[[^\]\n]+\]\([\w.-]+\.md\)|\*\*[^*\n]+\*\*|(?<![\w*])\*[^*\s][^*\n]*\*(?![\w*]))/;
