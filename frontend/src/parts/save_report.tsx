// A dialog that saves a report in the form that its reader has a program for.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { open } from "../api.ts";
import { useWork } from "../look.ts";
import { timezone } from "../preferences.ts";
import { Dialog } from "./dialog.tsx";
import { RefusalNotice } from "./notices.tsx";

const FORMS = {
  pdf: "PDF",
  docx: "Word (DOCX)",
  html: "a page (HTML)",
  md: "Markdown",
  csv: "its tables (CSV)",
  evidence: "its evidence (CSV)",
};

/** `path` is where the server makes it; `more` what it is asked beside the form. */
export function SaveReport(props: {
  title: string;
  path: string;
  more?: Record<string, string>;
  close: () => void;
  children?: ComponentChildren;
}): JSX.Element {
  const [reveal, setReveal] = useState(false);
  const [told, setTold] = useState("");
  const [run, busy, refusal] = useWork();
  const save = (event: MouseEvent, words: string): void => {
    event.preventDefault();
    const { href } = event.currentTarget as HTMLAnchorElement;
    setTold(`Making ${words}...`);
    run(async () => {
      await saved(await open("GET", href));
      setTold("Saved.");
    });
  };
  return (
    <Dialog title={props.title} onClose={props.close}>
      <p>
        First what a manager reads: what happened or is open, how bad it is, what was done and who approved it, what is
        next. The evidence is its annex.
      </p>
      {props.children}
      <label class="tick">
        <input type="checkbox" checked={reveal} onInput={(event) => setReveal(event.currentTarget.checked)} /> With the
        hidden values that you may see; the report says so
      </label>
      <p class="label" id="save-as">
        Save it as
      </p>
      <ul class="row forms" aria-labelledby="save-as">
        {Object.entries(FORMS).map(([form, words], place) => (
          <li key={form}>
            <a
              class={place === 0 ? "button main" : "button"}
              href={`${props.path}?${new URLSearchParams({ ...props.more, format: form, reveal: `${reveal}`, timezone: timezone() })}`}
              download
              onClick={(event) => save(event, words)}
            >
              {words}
            </a>
          </li>
        ))}
      </ul>
      <p role="status">{busy || refusal === null ? told : ""}</p>
      <RefusalNotice refusal={refusal} />
    </Dialog>
  );
}

/** Give the file to the browser, under the name that the server gave it. */
async function saved(response: Response): Promise<void> {
  const named = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = named?.[1] ?? "report";
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
