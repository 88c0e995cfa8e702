// A graph in columns as a picture: one stop of the Tab key, arrows move from node to node, Enter follows or chooses.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { EntityGraph, Spot } from "../entity_graph.ts";
import { type Layout, layered } from "../graph_layout.ts";

const WIDTH = 212;
const HEIGHT = 38;
const ACROSS = 60;
const DOWN = 8;

export function GraphPicture(props: {
  graph: EntityGraph;
  title: string;
  chosen: string | null;
  onChoose: (id: string) => void;
}): JSX.Element {
  const { spots, edges } = props.graph;
  const layout = layered(spots, edges);
  const svg = useRef<SVGSVGElement>(null);
  const [reached, setReached] = useState(spots[0]?.id ?? "");
  const current = layout.place.has(reached) ? reached : (spots[0]?.id ?? "");
  const width = Math.max(1, layout.columns.length) * (WIDTH + ACROSS) - ACROSS + 4;
  const height = layout.rows * (HEIGHT + DOWN) + 4;
  const at = (id: string): { x: number; y: number } => placeOf(layout, id, height);
  const near = props.chosen === null ? null : beside(props.chosen, edges);

  const move = (event: KeyboardEvent): void => {
    const next = stepped(layout, current, event.key);
    if (next !== null) {
      event.preventDefault();
      setReached(next);
      svg.current?.querySelector<SVGElement>(`[data-spot="${CSS.escape(next)}"]`)?.focus();
    }
  };
  const choose = (spot: Spot): void => {
    setReached(spot.id);
    props.onChoose(spot.id);
  };
  return (
    <div class="picture">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot stand in a picture */}
      <svg
        ref={svg}
        class="graph"
        role="group"
        aria-label={props.title}
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        onKeyDown={move}
      >
        {edges.map(({ from, to }) => {
          const [start, end] = [at(from), at(to)];
          const [x1, y1, x2, y2] = [start.x + WIDTH, start.y + HEIGHT / 2, end.x, end.y + HEIGHT / 2];
          const lit = props.chosen !== null && (from === props.chosen || to === props.chosen);
          const path = `M${x1},${y1} C${x1 + ACROSS / 2},${y1} ${x2 - ACROSS / 2},${y2} ${x2},${y2}`;
          return <path key={`${from} ${to}`} d={path} class={lit ? "lit" : ""} />;
        })}
        {spots.map((spot) => {
          const { x, y } = at(spot.id);
          const faint = near !== null && !near.has(spot.id);
          return (
            <SpotView
              key={spot.id}
              spot={spot}
              x={x}
              y={y}
              faint={faint}
              chosen={spot.id === props.chosen}
              reached={spot.id === current}
              onChoose={() => choose(spot)}
            />
          );
        })}
      </svg>
    </div>
  );
}

function SpotView(props: {
  spot: Spot;
  x: number;
  y: number;
  faint: boolean;
  chosen: boolean;
  reached: boolean;
  onChoose: () => void;
}): JSX.Element {
  const { spot, x, y } = props;
  const told = `${spot.kind}: ${spot.label}`;
  const common = {
    tabindex: props.reached ? 0 : -1, // an attribute in a picture is spelled as it stands
    "data-spot": spot.id,
    class: `spot ${spot.sort} ${spot.severity ?? ""} ${props.faint ? "faint" : ""}`,
  };
  const drawn = (
    <>
      <title>{told}</title>
      <rect x={x} y={y} width={WIDTH} height={HEIGHT} rx={6} />
      {/* A picture of its own, so that what is wider than its node is cut there. */}
      {/* biome-ignore lint/a11y/noSvgWithoutTitle: the node that it belongs to has one */}
      <svg x={x + 8} y={y} width={WIDTH - 12} height={HEIGHT}>
        <text y={15} class="kind">
          {spot.kind}
        </text>
        <text y={31}>{short(spot.label)}</text>
      </svg>
    </>
  );
  if (spot.href !== undefined) {
    return (
      <a href={spot.href} {...common}>
        {drawn}
      </a>
    );
  }
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      props.onChoose();
    }
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no HTML buttons in a picture
    <g role="button" aria-pressed={props.chosen} onClick={props.onChoose} onKeyDown={pressed} {...common}>
      {drawn}
    </g>
  );
}

function placeOf(layout: Layout, id: string, height: number): { x: number; y: number } {
  const { column, row } = layout.place.get(id) ?? { column: 0, row: 0 };
  const count = layout.columns[column]?.length ?? 1;
  const step = (height - 4) / count;
  return { x: 2 + column * (WIDTH + ACROSS), y: 2 + row * step + (step - HEIGHT) / 2 };
}

/** The node to which a key leads, null where there is none. */
function stepped(layout: Layout, from: string, key: string): string | null {
  const here = layout.place.get(from);
  if (here === undefined) {
    return null;
  }
  const column = layout.columns[here.column] ?? [];
  switch (key) {
    case "ArrowDown":
      return column[here.row + 1] ?? null;
    case "ArrowUp":
      return column[here.row - 1] ?? null;
    case "ArrowRight":
    case "ArrowLeft": {
      const next = layout.columns[here.column + (key === "ArrowRight" ? 1 : -1)] ?? [];
      const share = column.length < 2 ? 0.5 : here.row / (column.length - 1);
      return next[Math.round(share * (next.length - 1))] ?? null;
    }
    default:
      return null;
  }
}

function beside(id: string, edges: EntityGraph["edges"]): Set<string> {
  return new Set([id, ...edges.flatMap(({ from, to }) => (from === id ? [to] : to === id ? [from] : []))]);
}

function short(label: string): string {
  const letters = [...label];
  return letters.length <= 26 ? label : `${letters.slice(0, 25).join("")}…`;
}
