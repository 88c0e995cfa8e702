// Counts over time by severity: stacked bars, and the same as a table for whoever does not see them.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { local, OLD_S } from "../times.ts";
import type { Bucket } from "../tool_rows.ts";

const STACK: ["high" | "medium" | "low" | "informational", string][] = [
  ["informational", "Informational"],
  ["low", "Low"],
  ["medium", "Medium"],
  ["high", "High"],
];
const HEIGHT = 180;
const BELOW = 34;
const LEFT = 44;
const RIGHT = 8;
const WIDEST = 720;
const HOURS: Record<string, number> = { "1h": 1, "6h": 6, "1d": 24, "7d": 168 };

/** Whether a count of nothing means that there was nothing: no rows of that time are kept any more, or none have come
 * for so long that they may not arrive. */
type Known = "known" | "not kept" | "none came";

/** `oldest` and `newest` are the times of the table's first and last row, `at` is when it was read. */
export function Bars(props: {
  buckets: Bucket[];
  interval: string;
  oldest: string | null;
  newest: string | null;
  at: number;
}): JSX.Element {
  const { buckets, interval } = props;
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  const top = rounded(most);
  const frame = useRef<HTMLElement>(null);
  const [room, setRoom] = useState(WIDEST);
  const step = Math.max(14, Math.min(64, room / Math.max(1, buckets.length)));
  const width = LEFT + step * buckets.length + RIGHT;
  useEffect(() => {
    const measure = (): void => setRoom(Math.min(WIDEST, (frame.current?.clientWidth ?? WIDEST) - LEFT - RIGHT));
    measure();
    window.addEventListener("resize", measure);
    return () => window.removeEventListener("resize", measure);
  }, []);
  useEffect(() => {
    // The newest bars are the ones that somebody is here for.
    frame.current?.scrollTo({ left: width });
  }, [width]);
  const each = Math.max(1, Math.ceil(96 / step));
  const known = buckets.map((bucket) => knownOf(bucket, interval, props));
  return (
    <>
      <ul class="legend" aria-hidden="true">
        {STACK.toReversed().map(([name, words]) => (
          <li key={name}>
            <span class={`swatch ${name}`} /> {words}
          </li>
        ))}
      </ul>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <section ref={frame} class="scroll" aria-label="Alerts over time, drawn" tabIndex={0}>
        <svg class="bars" role="img" width={width} height={HEIGHT + BELOW} viewBox={`0 0 ${width} ${HEIGHT + BELOW}`}>
          <title>{sentence(buckets, known)}</title>
          <defs>
            <pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <line x1="0" y1="0" x2="0" y2="6" class="grid" />
            </pattern>
          </defs>
          {[0, 0.5, 1].map((share) => (
            <g key={share}>
              <line x1={LEFT} x2={width} y1={up(share * top, top)} y2={up(share * top, top)} class="grid" />
              <text x={LEFT - 6} y={up(share * top, top) + 4} text-anchor="end">
                {share * top}
              </text>
            </g>
          ))}
          {buckets.map((bucket, place) => (
            <g key={bucket.time}>
              {known[place] === "known" ? (
                <Stack bucket={bucket} x={LEFT + place * step + 2} width={step - 4} top={top} />
              ) : (
                <rect x={LEFT + place * step + 2} y={8} width={step - 4} height={HEIGHT - 8} fill="url(#hatched)" />
              )}
              {place % each === 0 ? (
                <text x={LEFT + place * step} y={HEIGHT + 18}>
                  {short(bucket.time, interval)}
                </text>
              ) : null}
            </g>
          ))}
        </svg>
      </section>
      {step * buckets.length > room + 1 ? <p class="quiet">Earlier bars stand to the left: scroll there.</p> : null}
      <p class="quiet">{reach(props.oldest, props.newest, known)}</p>
      <details>
        <summary>The same as a table</summary>
        <Twin buckets={buckets} known={known} />
      </details>
    </>
  );
}

function Stack(props: { bucket: Bucket; x: number; width: number; top: number }): JSX.Element {
  let below = 0;
  return (
    <>
      {STACK.map(([name]) => {
        const count = props.bucket[name];
        const y = up(below + count, props.top);
        const height = up(below, props.top) - y;
        below += count;
        return count === 0 ? null : (
          <rect key={name} x={props.x} y={y} width={props.width} height={height} class={name} />
        );
      })}
    </>
  );
}

function Twin({ buckets, known }: { buckets: Bucket[]; known: Known[] }): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="scroll" aria-label="Alerts over time, as a table" tabIndex={0}>
      <table>
        <caption>Alerts by the time at which each bar begins</caption>
        <thead>
          <tr>
            {["From", "All", "High", "Medium", "Low", "Informational"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {buckets.map((bucket, place) => (
            <tr key={bucket.time}>
              <th scope="row">{local(bucket.time) ?? "not known"}</th>
              {[bucket.count, bucket.high, bucket.medium, bucket.low, bucket.informational].map((count, column) => (
                <td key={column}>{known[place] === "known" ? count : <span class="quiet">{known[place]}</span>}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function knownOf(
  bucket: Bucket,
  interval: string,
  table: { oldest: string | null; newest: string | null; at: number },
): Known {
  const begin = Date.parse(bucket.time);
  const end = begin + (HOURS[interval] ?? 1) * 3_600_000;
  if (bucket.count > 0) {
    return "known";
  }
  if (table.oldest !== null && end <= Date.parse(table.oldest)) {
    return "not kept";
  }
  const newest = table.newest === null ? Number.NaN : Date.parse(table.newest);
  return table.at - newest > OLD_S * 1_000 && begin > newest ? "none came" : "known";
}

function up(count: number, top: number): number {
  return HEIGHT - (count / top) * (HEIGHT - 8);
}

/** The next even number that is easy to halve. */
function rounded(most: number): number {
  const size = 10 ** Math.floor(Math.log10(most));
  const steps = [1, 2, 4, 6, 8, 10].map((step) => step * size);
  const found = steps.find((step) => step >= most) ?? most;
  return found % 2 === 0 ? found : found + 1;
}

function short(time: string, interval: string): string {
  const told = local(time) ?? "";
  return interval === "1d" || interval === "7d" ? told.slice(5, 10) : `${told.slice(5, 10)} ${told.slice(11)}`;
}

function sentence(buckets: Bucket[], known: Known[]): string {
  const total = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  const peak = buckets.reduce<Bucket | null>((best, each) => (best && best.count >= each.count ? best : each), null);
  const none = known.filter((each) => each !== "known").length;
  const unknown = none === 0 ? "" : ` Of ${none} bars it is not known.`;
  return peak === null || total === 0
    ? `No alert in ${buckets.length} bars.${unknown}`
    : `${total} alerts in ${buckets.length} bars; most, ${peak.count}, from ${local(peak.time)} on.${unknown}`;
}

function reach(oldest: string | null, newest: string | null, known: Known[]): string {
  const told: string[] = [];
  if (oldest !== null && known.includes("not kept")) {
    told.push(`Hatched at the beginning: nothing is kept from before ${local(oldest)}, so it is not known.`);
  }
  if (newest !== null) {
    told.push(
      known.includes("none came")
        ? `Hatched at the end: nothing has come since ${local(newest)}. Whether it was quiet is not known.`
        : `The newest alert here is of ${local(newest)}.`,
    );
  }
  return told.join(" ");
}
