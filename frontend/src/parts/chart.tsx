// Charts: columns over time, bars of a ranking, the parts of a whole, dots with a median. Each is a picture with a name
// that says what it shows, and the same as a table behind it.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type Chart, lowered, type Point, type Series } from "../charts.ts";
import { isSeverity } from "../severities.ts";
import { visible } from "../visible.ts";
import { Scroll } from "./scroll.tsx";

const HEIGHT = 168;
const BELOW = 24;
const ABOVE = 16;
const LEFT = 40;
const RIGHT = 8;
const USUAL = 720;

/** What was found in the rows of a table. */
export function ChartOf({ chart, ...ways }: { chart: Chart } & Ways): JSX.Element {
  return chart.kind === "trend" ? (
    <Columns {...chart} {...ways} />
  ) : chart.kind === "parts" ? (
    <Ring {...chart} />
  ) : (
    <Ranking {...chart} {...ways} />
  );
}

/** From a drawing to the rows that it counts. */
interface Ways {
  /** The address of what a label names. */
  link?: (label: string) => string | undefined;
  /** Called with the times at which a column begins and ends; the last one has no end. */
  onPick?: ((from: string, to: string | null) => void) | undefined;
}

/** The room that a drawing has, in pixels: text in it keeps its size. */
function useRoom(): [(place: HTMLElement | null) => void, number, { current: HTMLElement | null }] {
  const place = useRef<HTMLElement | null>(null);
  const [room, setRoom] = useState(USUAL);
  useEffect(() => {
    const measure = (): void => {
      const width = place.current?.clientWidth ?? 0;
      if (width > 0) {
        setRoom(width);
      }
    };
    measure();
    const watch = new ResizeObserver(measure);
    if (place.current !== null) {
      watch.observe(place.current);
    }
    return () => watch.disconnect();
  }, []);
  return [
    (element) => {
      place.current = element;
    },
    room,
    place,
  ];
}

interface Drawn {
  title: string;
  /** What the labels are. */
  of: string;
  series: Series[];
  points: Point[];
  /** What is counted. */
  unit?: string;
}

/** Columns over time, the series on each other, the last one on top. */
export function Columns(props: Drawn & Ways & { note?: ComponentChildren }): JSX.Element {
  const { points, series, onPick } = props;
  const unit = props.unit ?? (series.length === 1 ? series[0]?.name : undefined) ?? "";
  const [at, setAt] = useState<number | null>(null);
  const pointed = at === null ? undefined : points[at];
  const pick = (place: number): void => onPick?.(points[place]?.full ?? "", points[place + 1]?.full ?? null);
  const [place, room, frame] = useRoom();
  const pattern = useId();
  const sums = points.map((point) => point.values.reduce((sum, each) => sum + each, 0));
  const most = Math.max(1, ...sums);
  const top = rounded(most);
  const step = Math.max(12, Math.min(64, (room - LEFT - RIGHT) / Math.max(1, points.length)));
  const width = LEFT + step * points.length + RIGHT;
  const each = Math.max(1, Math.ceil((longest(points) * 6 + 12) / step));
  const peak = sums.indexOf(most);
  const up = (count: number): number => ABOVE + HEIGHT - (count / top) * HEIGHT;
  useEffect(() => {
    // The newest columns are the ones that somebody is here for.
    frame.current?.scrollTo({ left: width });
  }, [width]);
  return (
    <>
      {series.length > 1 ? <Legend series={series.toReversed()} /> : null}
      <Scroll place={place} label={`${visible(props.title)}, drawn`}>
        <svg
          class="chart columns"
          role="img"
          width={width}
          height={ABOVE + HEIGHT + BELOW}
          viewBox={`0 0 ${width} ${ABOVE + HEIGHT + BELOW}`}
          onMouseLeave={() => setAt(null)}
        >
          <title>{sentence(props, sums)}</title>
          <defs>
            <pattern
              id={pattern}
              class="hatch"
              width="6"
              height="6"
              patternUnits="userSpaceOnUse"
              patternTransform="rotate(45)"
            >
              <line x1="0" y1="0" x2="0" y2="6" />
            </pattern>
          </defs>
          {[0, 0.5, 1].map((share) => (
            <g key={share}>
              <line x1={LEFT} x2={width - RIGHT} y1={up(share * top)} y2={up(share * top)} class="grid" />
              <text x={LEFT - 6} y={up(share * top) + 4} text-anchor="end">
                {share * top}
              </text>
            </g>
          ))}
          {points.map((point, at) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: for the keyboard the table below leads to the same
            <g
              key={point.full}
              class={onPick === undefined ? "hovered" : "hovered leads"}
              onMouseEnter={() => setAt(at)}
              onClick={() => pick(at)}
            >
              <rect class="ground" x={LEFT + at * step} y={ABOVE} width={step} height={HEIGHT} />
              {point.unknown === undefined ? (
                <Stack
                  values={point.values}
                  series={series}
                  x={LEFT + at * step + step * 0.15}
                  width={step * 0.7}
                  up={up}
                />
              ) : (
                <rect x={LEFT + at * step + 1} y={ABOVE} width={step - 2} height={HEIGHT} fill={`url(#${pattern})`} />
              )}
              {at % each === 0 ? (
                <text x={LEFT + at * step + step / 2} y={ABOVE + HEIGHT + 16} text-anchor="middle">
                  {visible(point.label)}
                </text>
              ) : null}
            </g>
          ))}
          {(sums[peak] ?? 0) > 0 ? (
            <text class="value" x={LEFT + peak * step + step / 2} y={up(most) - 4} text-anchor="middle">
              {most}
            </text>
          ) : null}
        </svg>
      </Scroll>
      <p class="label readout" aria-hidden="true">
        {pointed === undefined
          ? `${summed(sums)} ${visible(lowered(unit))}`
          : toldOf(pointed, series, sums[at ?? 0] ?? 0)}
        {pointed === undefined || onPick === undefined ? "" : ". A click shows them."}
      </p>
      {width > room + 1 ? <p class="label">Earlier columns stand to the left: scroll there.</p> : null}
      {props.note}
      <Twin {...props} onPick={onPick === undefined ? undefined : pick} />
    </>
  );
}

function Stack(props: {
  values: number[];
  series: Series[];
  x: number;
  width: number;
  up: (count: number) => number;
}): JSX.Element {
  let below = 0;
  return (
    <>
      {props.values.map((count, at) => {
        const y = props.up(below + count);
        const height = props.up(below) - y;
        below += count;
        const { name, tone } = props.series[at] ?? { name: "", tone: "" };
        return count === 0 ? null : (
          <rect
            key={name}
            x={props.x}
            y={y}
            width={props.width}
            height={Math.max(1, height - (props.values.length > 1 ? 1 : 0))}
            class={`mark ${tone}`}
          />
        );
      })}
    </>
  );
}

/** A letter of a name, at its widest: a name that does not fit is cut, and never laid over what stands beside it. */
const LETTER = 7.2;
const ROW = 26;
const NAMES = 0.42;

/** Bars beside their names, the longest first as they come. */
export function Ranking(props: Drawn & Ways): JSX.Element {
  const { points, link } = props;
  const [place, room] = useRoom();
  const most = Math.max(1, ...points.map((point) => point.values[0] ?? 0));
  const names = Math.min(280, Math.max(96, Math.min(room * NAMES, longest(points) * 7 + 16)));
  const bars = Math.max(40, room - names - (points.some((point) => point.percent !== undefined) ? 96 : 56));
  const height = points.length * ROW + 4;
  const fits = Math.floor((names - 8) / LETTER);
  return (
    <>
      <section ref={place} aria-label={`${visible(props.title)}, drawn`}>
        <svg class="chart ranking" role="img" width={room} height={height} viewBox={`0 0 ${room} ${height}`}>
          <title>{rankedSentence(props)}</title>
          {points.map((point, at) => {
            const value = point.values[0] ?? 0;
            const long = Math.max(2, (value / most) * bars);
            const label = visible(point.label);
            const to = link?.(point.full);
            const name = (
              <text class="name" x={names - 8} y={at * ROW + 17} text-anchor="end">
                {label.length > fits ? `${label.slice(0, fits - 1)}…` : label}
              </text>
            );
            return (
              <g key={point.full}>
                <title>{`${label}: ${amount(point)}`}</title>
                {to === undefined ? (
                  name
                ) : (
                  <a href={to} aria-label={label}>
                    {name}
                  </a>
                )}
                <rect class="bed" x={names} y={at * ROW + 6} width={bars} height={14} rx={2} />
                <rect
                  class={`mark ${point.label.toLowerCase()}`}
                  x={names}
                  y={at * ROW + 6}
                  width={long}
                  height={14}
                  rx={2}
                />
                <text class="value" x={names + long + 6} y={at * ROW + 17}>
                  {amount(point)}
                </text>
              </g>
            );
          })}
        </svg>
      </section>
      <Twin {...props} onPick={undefined} />
    </>
  );
}

const RADIUS = 60;
const THICK = 26;
const AROUND = 2 * Math.PI * RADIUS;

/** The few parts of a whole as a ring, the largest first from the top, each with its count and its percent beside it. */
export function Ring(props: Drawn): JSX.Element {
  const { points } = props;
  const total = points.reduce((sum, point) => sum + (point.values[0] ?? 0), 0);
  const size = 2 * RADIUS + THICK + 4;
  let before = 0;
  return (
    <>
      <div class="ring">
        <svg class="chart" role="img" width={size} height={size} viewBox={`${-size / 2} ${-size / 2} ${size} ${size}`}>
          <title>{`${visible(props.title)}: ${points.map((point) => `${visible(point.label)} ${amount(point)}`).join(", ")}`}</title>
          {points.map((point, at) => {
            const long = ((point.values[0] ?? 0) / Math.max(1, total)) * AROUND;
            const start = before;
            before += long;
            return (
              <circle
                key={point.full}
                class={`arc ${toneOf(point, at)}`}
                r={RADIUS}
                stroke-width={THICK}
                stroke-dasharray={`${Math.max(1, long - 2)} ${AROUND}`}
                stroke-dashoffset={-start}
                transform="rotate(-90)"
              >
                <title>{`${visible(point.label)}: ${amount(point)}`}</title>
              </circle>
            );
          })}
          <text class="figure" y={2} text-anchor="middle">
            {total}
          </text>
          <text y={18} text-anchor="middle">
            in all
          </text>
        </svg>
        <ul class="parts">
          {points.map((point, at) => (
            <li key={point.full}>
              <svg viewBox="0 0 8 8" aria-hidden="true">
                <rect class={`swatch ${toneOf(point, at)}`} width={8} height={8} rx={1} />
              </svg>
              <span class="long">{visible(point.label)}</span>
              <strong>{point.values[0] ?? 0}</strong>
              <span class="quiet">{point.percent ?? 0} %</span>
            </li>
          ))}
        </ul>
      </div>
      <Twin {...props} />
    </>
  );
}

/** A severity's own colour, else one of as many as a ring has parts. */
function toneOf(point: Point, at: number): string {
  return isSeverity(point.label) ? point.label.toLowerCase() : `part${at}`;
}

function amount(point: Point): string {
  const count = String(point.values[0] ?? 0);
  return point.percent === undefined ? count : `${count} · ${point.percent} %`;
}

function toldOf(point: Point, series: Series[], sum: number): string {
  const parts = series.map(({ name }, at) => `${visible(name)} ${point.values[at] ?? 0}`).toReversed();
  const whole = series.length > 1 ? `${sum} (${parts.join(", ")})` : String(sum);
  return `${visible(point.full)}: ${point.unknown ?? whole}`;
}

/** The parts of a whole in one strip, with their counts as words beside it. */
export function Share(props: { parts: { series: Series; count: number }[]; title: string }): JSX.Element {
  const total = props.parts.reduce((sum, part) => sum + part.count, 0);
  let left = 0;
  const told = props.parts.map((part) => `${part.series.name} ${part.count}`).join(", ");
  return (
    <div class="share">
      <svg class="chart" role="img" viewBox="0 0 400 10" height={10} preserveAspectRatio="none">
        <title>{`${visible(props.title)}: ${visible(told)}`}</title>
        {props.parts.map((part) => {
          const x = left;
          const width = (part.count / Math.max(1, total)) * 400;
          left += width;
          return part.count === 0 ? null : (
            <rect
              key={part.series.name}
              class={`mark ${part.series.tone}`}
              x={x}
              y={0}
              width={Math.max(1, width - 1.5)}
              height={10}
            />
          );
        })}
      </svg>
      <Legend series={props.parts.map((part) => ({ ...part.series, name: `${part.series.name} ${part.count}` }))} />
    </div>
  );
}

/** How many times the middle value the scale may reach before it is bent. */
const BENT = 8;

/** A dot for each value of a group, and the group's median as a line; no average hides the tail. */
export function Dots(props: {
  title: string;
  unit: string;
  /** `short` is the label where there is little room. */
  groups: { label: string; short: string; dots: { name: string; value: number; tone: string }[] }[];
}): JSX.Element {
  const { groups } = props;
  const [place, room] = useRoom();
  const all = groups.flatMap((group) => group.dots);
  const top = rounded(Math.max(1, ...all.map((dot) => dot.value)));
  const wide = (room - LEFT - RIGHT) / Math.max(1, groups.length);
  const bent = top > BENT * median({ dots: all });
  const up = (value: number): number => ABOVE + HEIGHT - (value / top) ** (bent ? 0.5 : 1) * HEIGHT;
  const told = groups
    .map((group) => `${group.label}: ${group.dots.length}, median ${round(median(group))} ${props.unit}`)
    .join("; ");
  return (
    <>
      <section ref={place} aria-label={`${props.title}, drawn`}>
        <svg
          class="chart dots"
          role="img"
          width={room}
          height={ABOVE + HEIGHT + BELOW + 16}
          viewBox={`0 0 ${room} ${ABOVE + HEIGHT + BELOW + 16}`}
        >
          <title>{`${props.title}. ${told}`}</title>
          {[0, bent ? 0.25 : 0.5, 1].map((share) => (
            <g key={share}>
              <line x1={LEFT} x2={room - RIGHT} y1={up(share * top)} y2={up(share * top)} class="grid" />
              <text x={LEFT - 6} y={up(share * top) + 4} text-anchor="end">
                {share * top} {props.unit}
              </text>
            </g>
          ))}
          {groups.map((group, at) => {
            const left = LEFT + at * wide;
            const count = group.dots.length;
            return (
              <g key={group.label}>
                {group.dots.map((dot, nth) => (
                  <circle
                    key={dot.name}
                    class={`mark ${dot.tone}`}
                    cx={left + (wide * (nth + 1)) / (count + 1)}
                    cy={up(dot.value)}
                    r={4}
                  >
                    <title>{`${dot.name}: ${round(dot.value)} ${props.unit}`}</title>
                  </circle>
                ))}
                {count === 0 ? null : (
                  <line
                    class="median"
                    x1={left + wide * 0.08}
                    x2={left + wide * 0.92}
                    y1={up(median(group))}
                    y2={up(median(group))}
                  />
                )}
                <text x={left + wide / 2} y={ABOVE + HEIGHT + 18} text-anchor="middle">
                  {wide < group.label.length * LETTER ? group.short : group.label}
                </text>
                <text class="value" x={left + wide / 2} y={ABOVE + HEIGHT + 34} text-anchor="middle">
                  {count === 0 ? "none" : `${round(median(group))} ${props.unit}`}
                </text>
              </g>
            );
          })}
        </svg>
      </section>
      {bent ? (
        <p class="label">Heights go by the square root, so that one long tail does not flatten the rest.</p>
      ) : null}
      <details>
        <summary>The same as a table</summary>
        <Scroll label={`${props.title}, as a table`} tall>
          <table>
            <thead>
              <tr>
                <th scope="col">Group</th>
                <th scope="col">Name</th>
                <th scope="col" class="num">
                  {props.unit}
                </th>
              </tr>
            </thead>
            <tbody>
              {groups.flatMap((group) =>
                group.dots.map((dot) => (
                  <tr key={`${group.label} ${dot.name}`}>
                    <td>{group.label}</td>
                    <th scope="row">{visible(dot.name)}</th>
                    <td class="num">{round(dot.value)}</td>
                  </tr>
                )),
              )}
            </tbody>
          </table>
        </Scroll>
      </details>
    </>
  );
}

/** Columns without axes, as small as a line of text; what it shows is its name. */
export function Spark({ series, points, title }: Omit<Drawn, "of">): JSX.Element {
  const sums = points.map((point) => point.values.reduce((sum, each) => sum + each, 0));
  const most = Math.max(1, ...sums);
  const step = 180 / Math.max(1, points.length);
  const up = (count: number): number => 28 - (count / most) * 28;
  return (
    <svg class="chart" role="img" viewBox="0 0 180 28" preserveAspectRatio="none">
      <title>{`${title}: ${points.map((point, at) => `${visible(point.label)} ${sums[at]}`).join(", ")}`}</title>
      {points.map((point, at) =>
        sums[at] === 0 ? (
          <rect key={point.full} class="bed" x={at * step + 1} y={27} width={step * 0.75} height={1} />
        ) : (
          <Stack key={point.full} values={point.values} series={series} x={at * step + 1} width={step * 0.75} up={up} />
        ),
      )}
    </svg>
  );
}

export function Legend({ series }: { series: Series[] }): JSX.Element {
  return (
    <ul class="legend">
      {series.map(({ name, tone }) => (
        <li key={name}>
          <svg viewBox="0 0 8 8" aria-hidden="true">
            <rect class={`swatch ${tone}`} width={8} height={8} rx={1} />
          </svg>
          {visible(name)}
        </li>
      ))}
    </ul>
  );
}

/** The same as a table, for whoever does not see the drawing. */
function Twin({
  title,
  of,
  series,
  points,
  onPick,
}: Drawn & { onPick?: ((at: number) => void) | undefined }): JSX.Element {
  const all = series.length > 1;
  return (
    <details>
      <summary>The same as a table</summary>
      <Scroll label={`${visible(title)}, as a table`} tall>
        <table>
          <thead>
            <tr>
              {[of, ...(all ? ["All"] : []), ...series.toReversed().map((each) => each.name)].map((name) => (
                <th key={name} scope="col" class={name === of ? undefined : "num"}>
                  {visible(name) || "Name"}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {points.map((point, at) => {
              const sum = point.values.reduce((total, each) => total + each, 0);
              return (
                <tr key={point.full}>
                  <th scope="row">
                    {onPick === undefined ? (
                      visible(point.full)
                    ) : (
                      <button type="button" class="link" onClick={() => onPick(at)}>
                        {visible(point.full)}
                      </button>
                    )}
                  </th>
                  {[...(all ? [sum] : []), ...point.values.toReversed()].map((count, column) => (
                    <td key={column} class="num">
                      {point.unknown === undefined ? count : <span class="quiet">{point.unknown}</span>}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
    </details>
  );
}

function summed(sums: number[]): number {
  return Math.round(sums.reduce((sum, each) => sum + each, 0) * 100) / 100;
}

function longest(points: Point[]): number {
  return Math.max(1, ...points.map((point) => point.label.length));
}

/** The next even number that is easy to halve. */
function rounded(most: number): number {
  const size = 10 ** Math.floor(Math.log10(most));
  const steps = [1, 2, 4, 6, 8, 10].map((step) => step * size);
  const found = steps.find((step) => step >= most) ?? most;
  return found % 2 === 0 ? found : found + 1;
}

function median({ dots }: { dots: { value: number }[] }): number {
  const values = dots.map((dot) => dot.value).sort((one, other) => one - other);
  const middle = Math.floor(values.length / 2);
  const upper = values[middle] ?? 0;
  return values.length % 2 === 1 ? upper : (upper + (values[middle - 1] ?? upper)) / 2;
}

function round(value: number): number {
  return value < 10 ? Math.round(value * 10) / 10 : Math.round(value);
}

function sentence({ title, points }: Drawn, sums: number[]): string {
  const total = sums.reduce((sum, each) => sum + each, 0);
  const most = Math.max(0, ...sums);
  const unknown = points.filter((point) => point.unknown !== undefined).length;
  const beside = unknown === 0 ? "" : ` Of ${unknown} columns it is not known.`;
  const peak = points[sums.indexOf(most)]?.full ?? "";
  return total === 0
    ? `${visible(title)}: nothing in ${points.length} columns.${beside}`
    : `${visible(title)}: ${total} in ${points.length} columns; most, ${most}, from ${visible(peak)} on.${beside}`;
}

function rankedSentence({ title, points }: Drawn): string {
  const [first, last] = [points[0], points.at(-1)];
  return `${visible(title)}: from ${visible(first?.label ?? "")} with ${first?.values[0] ?? 0} to ${visible(last?.label ?? "")} with ${last?.values[0] ?? 0}.`;
}
