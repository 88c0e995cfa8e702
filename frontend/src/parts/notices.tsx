// How the page says that something did not work: what happened, and what to do.
import type { JSX } from "preact";
import type { Refusal } from "../api.ts";
import { visible } from "../visible.ts";

export function RefusalNotice({ refusal }: { refusal: Refusal | null }): JSX.Element | null {
  if (refusal === null) {
    return null;
  }
  return (
    <p class="refusal" role="alert">
      {visible(refusal.detail)} {visible(refusal.nextStep)}
    </p>
  );
}
