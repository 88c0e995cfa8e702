// Where the nodes of a graph in columns stand, with few crossings: never more than in the order in which they came.
// Pure and the same for the same graph, so that a picture that was seen once is found again.

export interface GraphNode {
  id: string;
  column: number;
}

export interface GraphEdge {
  from: string;
  to: string;
}

export interface Layout {
  /** Column and row of each node, both from 0. */
  place: Map<string, { column: number; row: number }>;
  columns: string[][];
  rows: number;
}

const SWEEPS = 4;

/** `edges` lead from a lower column to a higher one; those to nodes that are not there are passed over. */
export function layered(nodes: GraphNode[], edges: GraphEdge[]): Layout {
  const width = Math.max(0, ...nodes.map((node) => node.column + 1));
  let columns = Array.from({ length: width }, (_, at) => nodes.filter((n) => n.column === at).map((n) => n.id));
  const beside = neighbours(nodes, edges);
  let best = columns;
  let least = crossings(columns, edges);
  for (let sweep = 0; sweep < SWEEPS && least > 0; sweep += 1) {
    const forward = sweep % 2 === 0;
    const order = forward ? columns.keys() : [...columns.keys()].reverse();
    for (const at of order) {
      const near = new Map<string, number>();
      for (const other of forward ? columns.slice(0, at) : columns.slice(at + 1)) {
        other.forEach((id, row) => {
          near.set(id, other.length < 2 ? 0.5 : row / (other.length - 1));
        });
      }
      columns = columns.map((column, place) => (place === at ? sorted(column, beside, near) : column));
    }
    const count = crossings(columns, edges);
    if (count < least) {
      best = columns;
      least = count;
    }
  }
  columns = best;
  const place = new Map<string, { column: number; row: number }>();
  columns.forEach((column, at) => {
    column.forEach((id, row) => {
      place.set(id, { column: at, row });
    });
  });
  return { place, columns, rows: Math.max(0, ...columns.map((column) => column.length)) };
}

function neighbours(nodes: GraphNode[], edges: GraphEdge[]): Map<string, string[]> {
  const found = new Map<string, string[]>(nodes.map((node) => [node.id, []]));
  for (const { from, to } of edges) {
    if (found.has(from) && found.has(to)) {
      found.get(from)?.push(to);
      found.get(to)?.push(from);
    }
  }
  return found;
}

/** How often edges between neighbouring columns cross in this order. */
export function crossings(columns: string[][], edges: GraphEdge[]): number {
  const at = new Map(columns.flatMap((column, place) => column.map((id, row) => [id, { place, row }] as const)));
  const between: [number, number][][] = columns.map(() => []);
  for (const { from, to } of edges) {
    const [start, end] = [at.get(from), at.get(to)];
    if (start !== undefined && end !== undefined && end.place === start.place + 1) {
      between[start.place]?.push([start.row, end.row]);
    }
  }
  const crossed = (pairs: [number, number][]): number =>
    pairs.reduce(
      (sum, [from, to], place) =>
        sum + pairs.slice(place + 1).filter((one) => (from - one[0]) * (to - one[1]) < 0).length,
      0,
    );
  return between.reduce((sum, pairs) => sum + crossed(pairs), 0);
}

/** The column by the middle of each node's neighbours; who has none there stays where it is. */
function sorted(column: string[], beside: Map<string, string[]>, near: Map<string, number>): string[] {
  const middle = (id: string, row: number): number => {
    const rows = (beside.get(id) ?? []).flatMap((other) => near.get(other) ?? []);
    const own = column.length < 2 ? 0.5 : row / (column.length - 1);
    return rows.length === 0 ? own : rows.reduce((sum, each) => sum + each, 0) / rows.length;
  };
  return column
    .map((id, row) => ({ id, row, at: middle(id, row) }))
    .sort((one, other) => one.at - other.at || one.row - other.row)
    .map(({ id }) => id);
}
