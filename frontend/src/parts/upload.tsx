// Files that a person drops or chooses, sent one after another, each with what became of it.
import type { ComponentChildren, JSX } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { asRefusal, type Refusal } from "../api.ts";
import { visible } from "../visible.ts";
import { Icon } from "./icon.tsx";
import { RefusalNotice } from "./notices.tsx";

export interface Upload<T> {
  key: number;
  file: File;
  found: T | null;
  refusal: Refusal | null;
}

/** The files so far, the newest last, and what puts more of them in. */
export function useUploads<T>(
  send: (file: File) => Promise<T>,
  done: () => void,
): [Upload<T>[], (files: File[]) => void] {
  const [uploads, setUploads] = useState<Upload<T>[]>([]);
  const line = useRef<Promise<void>>(Promise.resolve());
  const count = useRef(0);
  const settle = (key: number, part: Partial<Upload<T>>): void => {
    setUploads((before) => before.map((each) => (each.key === key ? { ...each, ...part } : each)));
  };
  const add = (files: File[]): void => {
    const begun = files.map((file) => ({ key: ++count.current, file, found: null, refusal: null }));
    setUploads((before) => [...before, ...begun]);
    for (const { key, file } of begun) {
      line.current = line.current
        .then(() => send(file))
        .then(
          (found) => settle(key, { found }),
          (error) => settle(key, { refusal: asRefusal(error) }),
        )
        .then(done);
    }
  };
  return [uploads, add];
}

/** Where files are dropped, or chosen by a button; `accept` are their endings. */
export function DropBox(props: { words: string; accept: string; onFiles: (files: File[]) => void }): JSX.Element {
  const [over, setOver] = useState(false);
  const id = useId();
  const took = (list: FileList | null | undefined): void => {
    if (list !== null && list !== undefined && list.length > 0) {
      props.onFiles([...list]);
    }
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: for the mouse alone; the field inside takes files by every other way
    <div
      class={over ? "dropbox over" : "dropbox"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        took(event.dataTransfer?.files);
      }}
    >
      <Icon name="upload" />
      <label for={id}>{props.words}</label>
      <input
        id={id}
        type="file"
        multiple
        accept={props.accept}
        onChange={(event) => {
          took(event.currentTarget.files);
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}

const DONE = { word: "done", tone: "ok" };

function Sign({ word, tone }: { word: string; tone: string }): JSX.Element {
  return <span class={`chip ${tone}`}>{word}</span>;
}

/** The files and what became of each; `children` draws what the server found. */
export function Uploads<T>(props: {
  uploads: Upload<T>[];
  busy: string;
  children: (found: T, file: File) => ComponentChildren;
  /** What became of a file that the server took, in a word. */
  sign?: (found: T) => { word: string; tone: string };
  refused?: (upload: Upload<T>) => ComponentChildren;
}): JSX.Element | null {
  return props.uploads.length === 0 ? null : (
    <ul class="listed files" aria-label="Files" aria-live="polite">
      {props.uploads.map((each) => (
        <li key={each.key}>
          <div class="row">
            <strong class="long">{visible(each.file.name)}</strong>
            {each.found !== null ? <Sign {...(props.sign?.(each.found) ?? DONE)} /> : null}
            {each.refusal !== null ? <span class="chip bad">not taken</span> : null}
          </div>
          {each.found === null && each.refusal === null ? <p class="quiet">{props.busy}</p> : null}
          <RefusalNotice refusal={each.refusal} />
          {each.refusal === null ? null : props.refused?.(each)}
          {each.found === null ? null : props.children(each.found, each.file)}
        </li>
      ))}
    </ul>
  );
}
