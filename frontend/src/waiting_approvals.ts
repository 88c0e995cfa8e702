// The approvals that wait, as they come and go. The server answers once something has changed, so nothing is asked in
// vain; of a browser's tabs one asks and tells the others, because a browser has few connections to a host.
import { ask, Refusal } from "./api.ts";
import type { Approval } from "./wire.ts";

interface Page {
  approvals: Approval[];
  mark: string;
}

const TAB_THAT_ASKS = "sentinel-approvals";
const AFTER_FAULT_MS = 5_000;

/** Call `listener` with what waits, now and after each change of any approval, until `signal` ends it. */
export function watchApprovals(listener: (waiting: Approval[]) => void, signal: AbortSignal): void {
  const channel = new BroadcastChannel(TAB_THAT_ASKS);
  channel.onmessage = (message) => listener((message.data as Page).approvals);
  signal.addEventListener("abort", () => channel.close());
  const tell = (page: Page): void => {
    listener(page.approvals);
    channel.postMessage(page);
  };
  void once(listener, signal);
  if (navigator.locks === undefined) {
    void untilEnded(tell, signal);
  } else {
    navigator.locks.request(TAB_THAT_ASKS, { signal }, () => untilEnded(tell, signal)).catch(() => {});
  }
}

async function once(listener: (waiting: Approval[]) => void, signal: AbortSignal): Promise<void> {
  try {
    listener((await page("", signal)).approvals);
  } catch {
    // The tab that asks goes on trying.
  }
}

async function untilEnded(tell: (page: Page) => void, signal: AbortSignal): Promise<void> {
  let mark = "";
  while (!signal.aborted) {
    try {
      const found = await page(mark, signal);
      if (found.mark !== mark) {
        tell(found);
      }
      mark = found.mark;
    } catch (error) {
      if (signal.aborted || (error instanceof Refusal && (error.status === 401 || error.status === 403))) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, AFTER_FAULT_MS));
    }
  }
}

function page(mark: string, signal: AbortSignal): Promise<Page> {
  return ask<Page>("GET", `/approvals?state=pending&limit=200${mark === "" ? "" : `&mark=${mark}`}`, undefined, signal);
}
