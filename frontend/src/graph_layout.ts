// Where the nodes of a graph in columns stand: each column sorted so that its edges to the one before cross little.
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
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
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
  }
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
