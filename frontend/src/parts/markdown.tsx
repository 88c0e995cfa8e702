// The Markdown of answers: paragraphs, headings, lists, quotes, code, bold and italic, and nothing else. HTML, images
// and links are text as they stand, so that an answer loads nothing; an address in it asks before it is opened.
import type { ComponentChildren, JSX } from "preact";
import { visible } from "../visible.ts";
import { linked } from "./linked.tsx";

type Block =
  | { kind: "code"; text: string }
  | { kind: "heading"; level: number; text: string }
  | { kind: "list"; ordered: boolean; start: number; items: string[] }
  | { kind: "quote" | "paragraph"; text: string };

export function Markdown({ text }: { text: string }): JSX.Element {
  return (
    <div class="markdown">
      {blocksOf(visible(text)).map((block, place) => (
        <BlockView key={place} block={block} />
      ))}
    </div>
  );
}

function BlockView({ block }: { block: Block }): JSX.Element {
  switch (block.kind) {
    case "code":
      return (
        <pre>
          <code>{block.text}</code>
        </pre>
      );
    case "heading":
      // Below the page's own headings, whatever level the answer chose.
      return block.level < 3 ? <h3>{inline(block.text)}</h3> : <h4>{inline(block.text)}</h4>;
    case "list": {
      const items = block.items.map((item, place) => <li key={place}>{inline(item)}</li>);
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "quote":
      return <blockquote>{inline(block.text)}</blockquote>;
    case "paragraph":
      return <p>{inline(block.text)}</p>;
  }
}

const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^\s*(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    const last = blocks.at(-1);
    if (line.trimStart().startsWith("```")) {
      const named = line.replace(/^\s*`+\s*/, "");
      const code: string[] = named === "" ? [] : [named];
      for (at += 1; at < lines.length && !(lines[at] ?? "").trimStart().startsWith("```"); at += 1) {
        code.push(lines[at] ?? "");
      }
      blocks.push({ kind: "code", text: code.join("\n") });
    } else if (line.trim() === "") {
      blocks.push({ kind: "paragraph", text: "" });
    } else if (heading !== null) {
      blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
    } else if (item !== null) {
      const ordered = item[2] !== undefined;
      if (last?.kind === "list" && last.ordered === ordered) {
        last.items.push(item[3] ?? "");
      } else {
        blocks.push({ kind: "list", ordered, start: Number(item[2] ?? 1), items: [item[3] ?? ""] });
      }
    } else if (line.startsWith(">")) {
      const said = line.replace(/^>\s?/, "");
      if (last?.kind === "quote") {
        last.text += `\n${said}`;
      } else {
        blocks.push({ kind: "quote", text: said });
      }
    } else if (last?.kind === "paragraph" && last.text !== "") {
      last.text += `\n${line}`;
    } else {
      blocks.push({ kind: "paragraph", text: line });
    }
  }
  return blocks.filter((block) => block.kind !== "paragraph" || block.text !== "");
}

const MARKS = /(`[^`\n]+`|\*\*[^*\n]+\*\*|(?<![\w*])\*[^*\s][^*\n]*\*(?![\w*]))/;

function inline(text: string): ComponentChildren[] {
  return text.split(MARKS).map((piece) => {
    if (piece.length > 2 && piece.startsWith("`") && piece.endsWith("`")) {
      return <code>{piece.slice(1, -1)}</code>;
    }
    if (piece.length > 4 && piece.startsWith("**") && piece.endsWith("**")) {
      return <strong>{linked(piece.slice(2, -2))}</strong>;
    }
    if (piece.length > 2 && piece.startsWith("*") && piece.endsWith("*")) {
      return <em>{linked(piece.slice(1, -1))}</em>;
    }
    return linked(piece);
  });
}
