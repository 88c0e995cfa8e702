// What happened in an incident, in its order, with the time that passed between.
import type { JSX } from "preact";
import { span } from "../times.ts";
import { visible } from "../visible.ts";
import { Time } from "./signs.tsx";

interface Moment {
  time: string | null;
  event: string;
}

const LONG_S = 60;

export function Timeline({ moments }: { moments: Moment[] }): JSX.Element {
  return (
    <ol class="timeline">
      {moments.map((moment, place) => {
        const gap = passed(moments[place - 1]?.time ?? null, moment.time);
        return (
          <li key={place}>
            {gap === null || gap < LONG_S ? null : <span class="gap quiet">{span(gap)} later</span>}
            <div class={`event ${sortOf(moment.event)}`}>
              <Time at={moment.time} /> <span>{visible(moment.event)}</span>
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function passed(before: string | null, now: string | null): number | null {
  const seconds = before === null || now === null ? Number.NaN : (Date.parse(now) - Date.parse(before)) / 1000;
  return Number.isNaN(seconds) ? null : seconds;
}

function sortOf(event: string): string {
  if (event.startsWith("Alert:")) {
    return "alert";
  }
  return event.startsWith("Comment") ? "comment" : "change";
}
