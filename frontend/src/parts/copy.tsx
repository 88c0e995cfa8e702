// A button that puts a text on the clipboard, and says whether it is there.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

export function CopyButton({ text, what }: { text: string; what: string }): JSX.Element {
  const [said, setSaid] = useState("");
  const copy = (): void => {
    const clipboard = navigator.clipboard as Clipboard | undefined; // there is none without TLS, beyond this machine
    (clipboard?.writeText(text) ?? Promise.reject(new Error("none"))).then(
      () => setSaid("Copied"),
      () => setSaid("Not allowed here"),
    );
  };
  return (
    <button type="button" class="bare small" aria-label={`Copy ${what}`} onClick={copy}>
      <Icon name={said === "Copied" ? "check" : "copy"} />
      <span role="status">{said || "Copy"}</span>
    </button>
  );
}
