// Answers questions about KQL with Microsoft's parser: one JSON object a line in, one out, in order.
//
// It reports what a query says and binds to: diagnostics, the kinds of its syntax, functions and plugins, and each
// tabular expression as a tree of sources and operators. It decides nothing; rules.py does.
// Positions are UTF-16 code units. Usage: node driver.cjs FOLDER-OF-THE-NPM-PACKAGE
// With --build-snapshot before driver.cjs it answers nothing: node keeps it as it is once it is ready, and starts from that.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { startupSnapshot } = require("node:v8");

const folder = process.argv[2];
for (const name of ["bridge.min.js", "Kusto.Language.Bridge.min.js"]) {
  // As a script of its own would run; node:vm does the same, and is not yet sound in a snapshot.
  (0, eval)(fs.readFileSync(path.join(folder, name), "utf8"));
}
const { KustoCode, GlobalState, Functions, Aggregates, PlugIns, Symbols, Syntax } = globalThis.Kusto.Language;
const Bridge = globalThis.Bridge;

// The script of the .NET bridge prints an error's whole stack to the console, which is our answer channel.
console.log = console.info = console.warn = () => {};

const KIND = Object.fromEntries(
  Object.entries(Syntax.SyntaxKind).filter(([, number]) => typeof number === "number").map(([name, number]) => [number, name]),
);
const SCALARS = {
  string: "String", long: "Long", int: "Int", real: "Real", bool: "Bool", datetime: "DateTime", dynamic: "Dynamic",
  guid: "Guid", timespan: "TimeSpan", decimal: "Decimal",
};
const TIME_COLUMNS = ["TimeGenerated", "Timestamp"];
const ROW_FUNCTIONS = new Set([
  "column_ifexists", "columnifexists", "ingestion_time", "next", "prev", "rand", "row_number",
]);
const COLUMN_GIVING = /^(?:with_itemindex|with_?source)\s*=\s*(?:\[\s*)?["']?(\w+)/;
const MOST_SCHEMAS = 8;
const schemas = new Map();

const kindOf = (node) => KIND[node.Kind];
const isNode = (element) => element !== null && Bridge.is(element, Syntax.SyntaxNode);
const isTable = (type) => type !== null && type !== undefined && Bridge.is(type, Symbols.TableSymbol);
const place = (node) => [node.TextStart, Math.max(node.End - node.TextStart, 0)];

function quietly(read) {
  try {
    return read() ?? null;
  } catch {
    return null;
  }
}

function items(list) {
  if (list === null || list === undefined) return [];
  if (Array.isArray(list)) return list;
  const found = [];
  for (let index = 0; index < list.Count; index++) {
    const item = list.getItem ? list.getItem(index) : globalThis.System.Array.getItem(list, index, Bridge.global.Object);
    found.push(item);
  }
  return found;
}

const elements = (list) => items(list).map((each) => each.Element$1 ?? each.Element ?? each);

function children(node) {
  const found = [];
  for (let index = 0; index < node.ChildCount; index++) {
    const child = node.GetChild(index);
    if (isNode(child)) found.push(child);
  }
  return found;
}

// The text of a node without the white space and comments between its words.
function wordsOf(node) {
  let text = "";
  for (let index = 0; index < node.ChildCount; index++) {
    const child = node.GetChild(index);
    if (isNode(child)) text += wordsOf(child);
    else if (child !== null && Bridge.is(child, Syntax.SyntaxToken)) text += child.Text;
  }
  return text;
}

function openTable(name) {
  return new Symbols.TableSymbol.$ctor4(name, []).WithIsOpen(true);
}

function tableOf(name, columns) {
  const symbols = Object.entries(columns).map(
    ([column, type]) => new Symbols.ColumnSymbol(column, Symbols.ScalarTypes[SCALARS[type]], null, null, null, null),
  );
  return new Symbols.TableSymbol.$ctor4(name, symbols);
}

function globalsOf(members) {
  const database = new Symbols.DatabaseSymbol.ctor("workspace", members);
  const cluster = new Symbols.ClusterSymbol.ctor("cluster", [database]);
  return GlobalState.Default.WithCluster(cluster).WithDatabase(database);
}

// A function nobody has told us: it takes what the query gives it, by place or by name, and may yield any columns.
function assumedFunction(name, kql) {
  const given = new Set();
  const waiting = [KustoCode.Parse(kql).Syntax];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (kindOf(node) === "FunctionCallExpression" && node.Name.SimpleName === name) {
      for (const argument of elements(node.ArgumentList.Expressions)) {
        if (kindOf(argument) === "SimpleNamedExpression") given.add(argument.Name.SimpleName);
      }
    }
    waiting.push(...children(node));
  }
  const parameter = (each, most) =>
    new Symbols.Parameter.ctor(
      each, Symbols.ParameterTypeKind.Any, Symbols.ArgumentKind.Expression, null, null, false, null, 0, most, null, null,
    );
  const parameters = given.size > 0 ? [...given].map((each) => parameter(each, 1)) : [parameter("argument", 64)];
  return new Symbols.FunctionSymbol.$ctor5(name, openTable(name), parameters);
}

let builtIn = null;
function originOf(symbol) {
  if (symbol === null || !Bridge.is(symbol, Symbols.FunctionSymbol)) return "unknown";
  if (builtIn === null) {
    builtIn = new Map();
    for (const each of items(Functions.All)) builtIn.set(each, "function");
    for (const each of items(Aggregates.All)) builtIn.set(each, "aggregate");
    for (const each of items(PlugIns.All)) builtIn.set(each, "plugin");
  }
  return builtIn.get(symbol) ?? "let";
}

class Reader {
  constructor(globals) {
    this.globals = globals;
    this.kinds = new Map();
    this.functions = [];
    this.references = [];
    this.wildcards = [];
  }

  // Everything that stands anywhere in the text, whatever it is nested in.
  survey(root) {
    const waiting = [root];
    while (waiting.length > 0) {
      const node = waiting.pop();
      const kind = kindOf(node);
      const seen = this.kinds.get(kind);
      if (seen === undefined || node.TextStart < seen[0]) this.kinds.set(kind, place(node));
      if (kind === "FunctionCallExpression") {
        this.functions.push([node.Name.SimpleName, originOf(quietly(() => node.ReferencedSymbol)), ...place(node.Name)]);
        const name = this.tableNamed(node);
        if (name !== null) this.references.push([name, ...place(node)]);
      } else if (kind === "NameReference") {
        const name = this.tableOf(node);
        if (name !== null) this.references.push([name, ...place(node)]);
      } else if (kind === "WildcardedName" || kind === "BracketedWildcardedName" || kind === "StarExpression") {
        this.wildcards.push([node.toString().trim(), ...place(node), this.operatorAround(node)]);
      }
      waiting.push(...children(node));
    }
  }

  operatorAround(node) {
    for (let above = node.Parent; above; above = above.Parent) {
      const kind = kindOf(above);
      if (/Operator$/.test(kind) || kind === "FunctionCallExpression" || kind === "SchemaTypeExpression") return kind;
    }
    return "";
  }

  tableOf(node) {
    const symbol = quietly(() => node.ReferencedSymbol);
    return isTable(symbol) && quietly(() => this.globals.GetDatabase(symbol)) !== null ? symbol.Name : null;
  }

  // table("Name") with a literal; with anything else the table is not known before it runs.
  tableNamed(call) {
    if (call.Name.SimpleName !== "table" || originOf(quietly(() => call.ReferencedSymbol)) !== "function") return null;
    const [argument] = elements(call.ArgumentList.Expressions);
    if (!argument || kindOf(argument) !== "StringLiteralExpression" || !isTable(quietly(() => call.ResultType))) return null;
    return String(argument.LiteralValue);
  }

  tabular(node) {
    const kind = kindOf(node);
    if (kind === "ParenthesizedExpression" || kind === "MaterializeExpression" || kind === "ToTableExpression") {
      return this.tabular(node.Expression);
    }
    if (kind === "PipeExpression") {
      const operators = [];
      let source = node;
      while (kindOf(source) === "PipeExpression") {
        operators.push(this.operator(source.Operator));
        source = source.Expression;
      }
      const inner = this.tabular(source);
      operators.reverse();
      if (inner.t === "pipe" && inner.bare) return { t: "pipe", source: inner.source, ops: [...inner.ops, ...operators], bare: true };
      return { t: "pipe", source: inner, ops: operators };
    }
    if (/Operator$/.test(kind)) return { t: "pipe", source: null, ops: [this.operator(node)], bare: true };
    if (kind === "NameReference") {
      const table = this.tableOf(node);
      if (table !== null) return { t: "table", name: table, at: place(node) };
      return { t: "ref", name: node.SimpleName, at: place(node) };
    }
    if (kind === "FunctionCallExpression") {
      const table = this.tableNamed(node);
      if (table !== null) return { t: "table", name: table, at: place(node) };
      const given = elements(node.ArgumentList.Expressions).map((each) => this.value(each));
      return { t: "call", name: node.Name.SimpleName, args: given, at: place(node) };
    }
    return { t: "other", kind, subs: this.within(node), at: place(node) };
  }

  // A tabular argument as its tree, a scalar one as what is nested in it.
  value(node) {
    const inner = kindOf(node) === "SimpleNamedExpression" ? node.Expression : node;
    const named = inner === node ? null : node.Name.SimpleName;
    if (isTable(quietly(() => inner.ResultType))) return { name: named, node: this.tabular(inner) };
    return { name: named, subs: this.within(inner) };
  }

  // The tabular expressions below a node that is not one itself.
  within(node) {
    const found = [];
    for (const child of children(node)) {
      if (kindOf(child) === "NameDeclaration") continue;
      if (kindOf(child) === "FunctionCallExpression" && originOf(quietly(() => child.ReferencedSymbol)) === "let") {
        found.push(this.tabular(child));
      } else if (Bridge.is(child, Syntax.Expression) && isTable(quietly(() => child.ResultType))) {
        found.push(this.tabular(child));
      } else {
        found.push(...this.within(child));
      }
    }
    return found;
  }

  operator(node) {
    const kind = kindOf(node);
    const told = { kind, at: place(node), bounds: [], defines: [], inputs: [], subs: [], lacks: this.lacking(node) };
    if (kind === "UnionOperator") {
      told.inputs = elements(node.Expressions).map((each) => this.tabular(each));
      told.defines = this.declared(node);
    } else if ((kind === "FindOperator" || kind === "SearchOperator") && node.InClause) {
      told.inputs = elements(node.InClause.Expressions).map((each) => this.tabular(each));
      told.bounds = node.Condition ? this.lowerBounds(node.Condition) : [];
      told.subs = node.Condition ? this.within(node.Condition) : [];
      return told;
    } else {
      told.subs = this.within(node);
      told.defines = this.declared(node);
    }
    if (kind === "FilterOperator") told.bounds = this.lowerBounds(node.Condition);
    if (kind === "SearchOperator") told.bounds = node.Condition ? this.lowerBounds(node.Condition) : [];
    if (kind === "MakeSeriesOperator") told.bounds = this.seriesBounds(node);
    if (kind === "JoinOperator" || kind === "LookupOperator") told.join = this.joinKind(node);
    if (kind === "TakeOperator" || kind === "TopOperator" || kind === "SampleOperator") {
      const count = quietly(() => node.Expression.ConstantValue);
      told.rows = count === null ? null : Number(count);
    }
    if (kind === "SampleDistinctOperator" || kind === "TopHittersOperator") {
      const count = quietly(() => node.Expression.ConstantValue);
      told.rows = count === null ? null : Number(count);
    }
    return told;
  }

  // A filter on a time column behind an operator without it is about another table's (one that a join brings in).
  lacking(node) {
    const type = quietly(() => node.ResultType);
    if (!isTable(type) || type.IsOpen) return [];
    const names = new Set(items(type.Columns).map((column) => column.Name));
    return TIME_COLUMNS.filter((name) => !names.has(name));
  }

  joinKind(node) {
    for (const parameter of items(node.Parameters)) {
      const text = parameter.toString().trim();
      const match = /^kind\s*=\s*(\w+)/.exec(text);
      if (match) return match[1];
    }
    return "innerunique";
  }

  declared(node) {
    const found = [];
    const look = (inner) => {
      for (const child of children(inner)) {
        if (kindOf(child) === "NamedParameter") {
          const given = COLUMN_GIVING.exec(child.toString().trim());
          if (given) found.push(given[1]);
          continue;
        }
        if (kindOf(child) === "NameDeclaration") found.push(child.SimpleName);
        else if (!(Bridge.is(child, Syntax.Expression) && isTable(quietly(() => child.ResultType)))) look(child);
      }
    };
    look(node);
    return found;
  }

  // Columns that a condition bounds from below by something that is the same for every row: [column, text of it].
  lowerBounds(condition) {
    const kind = kindOf(condition);
    if (kind === "ParenthesizedExpression") return this.lowerBounds(condition.Expression);
    if (kind === "AndExpression") return [...this.lowerBounds(condition.Left), ...this.lowerBounds(condition.Right)];
    if (kind === "GreaterThanExpression" || kind === "GreaterThanOrEqualExpression") {
      return this.bound(condition.Left, condition.Right);
    }
    if (kind === "LessThanExpression" || kind === "LessThanOrEqualExpression") {
      return this.bound(condition.Right, condition.Left);
    }
    if (kind === "EqualExpression") {
      return [...this.bound(condition.Left, condition.Right), ...this.bound(condition.Right, condition.Left)];
    }
    if (kind === "BetweenExpression") return this.bound(condition.Left, condition.Right.First);
    return [];
  }

  seriesBounds(node) {
    const range = node.RangeClause;
    const from = quietly(() => range.MakeSeriesFromClause) ?? quietly(() => range.FromClause);
    const on = quietly(() => node.OnClause.Expression);
    return from && on ? this.bound(on, from.Expression) : [];
  }

  bound(column, low) {
    const name = this.columnOf(column);
    return name === null || !this.sameForEveryRow(low) ? [] : [[name, wordsOf(low).slice(0, 120)]];
  }

  columnOf(node) {
    if (kindOf(node) === "ParenthesizedExpression") return this.columnOf(node.Expression);
    const symbol = kindOf(node) === "NameReference" ? quietly(() => node.ReferencedSymbol) : null;
    return symbol !== null && Bridge.is(symbol, Symbols.ColumnSymbol) ? symbol.Name : null;
  }

  sameForEveryRow(node) {
    if (kindOf(node) === "ToScalarExpression") return true;
    if (kindOf(node) === "NameReference") {
      const symbol = quietly(() => node.ReferencedSymbol);
      if (symbol === null || Bridge.is(symbol, Symbols.ColumnSymbol)) return false;
    }
    if (kindOf(node) === "FunctionCallExpression" && ROW_FUNCTIONS.has(node.Name.SimpleName)) return false;
    return children(node).every((child) => this.sameForEveryRow(child));
  }

  block(statements, expression) {
    const lets = [];
    for (const statement of statements) if (kindOf(statement) === "LetStatement") lets.push(this.letStatement(statement));
    return { t: "block", lets, body: this.value(expression) };
  }

  letStatement(node) {
    const told = { name: node.Name.SimpleName, at: place(node.Name) };
    const expression = node.Expression;
    if (kindOf(expression) === "FunctionDeclaration") {
      told.params = elements(expression.Parameters.Parameters).map((each) => each.NameAndType.Name.SimpleName);
      told.value = { name: null, node: this.block(elements(expression.Body.Statements), expression.Body.Expression) };
      if (!expression.Body.Expression) told.value = { name: null, subs: this.within(expression.Body) };
    } else {
      told.value = this.value(expression);
    }
    return told;
  }

  statements(root) {
    const found = [];
    for (const statement of elements(root.Statements)) {
      const kind = kindOf(statement);
      const told = { kind, at: place(statement) };
      if (kind === "LetStatement") told.let = this.letStatement(statement);
      else if (kind === "ExpressionStatement") told.value = this.value(statement.Expression);
      else told.subs = this.within(statement);
      found.push(told);
    }
    return found;
  }
}

function diagnosticsOf(code) {
  const found = [];
  for (const each of items(code.GetDiagnostics())) {
    const told = { code: each.Code, severity: each.Severity, message: each.Message, at: [each.Start, each.Length] };
    if (/does not refer to any known/.test(each.Message)) {
      told.columns = items(quietly(() => code.GetColumnsInScope(each.Start).Columns)).map((column) => column.Name).slice(0, 2000);
    }
    found.push(told);
  }
  return found;
}

function resultOf(code) {
  const type = code.ResultType;
  if (!isTable(type) || type.IsOpen) return null;
  return items(type.Columns).map((column) => [column.Name, column.Type.Name]);
}

function analyze(request) {
  let globals = schemas.get(request.schema);
  if (globals === undefined) return { unknown_schema: true };
  if (request.assumed_tables?.length || request.assumed_functions?.length) {
    globals = extended(request, globals);
  }
  const code = KustoCode.ParseAndAnalyze(request.kql, globals);
  const reader = new Reader(code.Globals);
  reader.survey(code.Syntax);
  const query = code.Kind === "Query";
  return {
    kind: code.Kind,
    diagnostics: diagnosticsOf(code),
    kinds: Object.fromEntries(reader.kinds),
    functions: reader.functions,
    references: reader.references,
    wildcards: reader.wildcards,
    statements: query ? reader.statements(code.Syntax) : [],
    result: query ? resultOf(code) : null,
  };
}

function extended(request, globals) {
  const known = items(globals.Database.Members);
  const assumed = new Set(request.assumed_tables ?? []);
  const opened = known.map((member) => (assumed.has(member.Name) ? member.WithIsOpen(true) : member));
  const missing = [...assumed].filter((name) => !known.some((member) => member.Name === name));
  return globalsOf([
    ...opened,
    ...missing.map(openTable),
    ...(request.assumed_functions ?? []).map((name) => assumedFunction(name, request.kql)),
  ]);
}

function keepSchema(request) {
  schemas.delete(request.schema);
  schemas.set(request.schema, globalsOf(Object.entries(request.tables).map(([name, columns]) => tableOf(name, columns))));
  if (schemas.size > MOST_SCHEMAS) schemas.delete(schemas.keys().next().value);
  return { tables: Object.keys(request.tables).length };
}

function names() {
  const of = (list) => items(list).map((each) => each.Name);
  return { functions: of(Functions.All), aggregates: of(Aggregates.All), plugins: of(PlugIns.All), kinds: Object.values(KIND) };
}

// The first analysis compiles most of the parser, so a process that is ready has done one.
function ready() {
  KustoCode.ParseAndAnalyze("print x = 1 | where x > 0", GlobalState.Default).GetDiagnostics();
  return { ready: true };
}

// The parser quotes single UTF-16 units, so half of a character may stand alone, which is no JSON for others.
const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const whole = (_, value) => (typeof value === "string" ? value.replace(HALF, "\ufffd") : value);

const OPERATIONS = { schema: keepSchema, analyze, names, ready };

function answerTo(line) {
  let id = null;
  let answer;
  try {
    const request = JSON.parse(line);
    id = request.id;
    answer = OPERATIONS[request.op](request);
  } catch (error) {
    answer = { failed: error instanceof RangeError ? "too deep" : String(error?.message ?? error).slice(0, 300) };
  }
  return `${JSON.stringify({ id, ...answer }, whole)}\n`;
}

// Lines end with a line feed and nothing else: node's own reader of lines also splits at U+2028, which a query may hold.
function serve() {
  let pending = Buffer.alloc(0);
  process.stdin.on("data", (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    for (let end = pending.indexOf(10); end >= 0; end = pending.indexOf(10)) {
      const line = pending.subarray(0, end).toString("utf8");
      pending = pending.subarray(end + 1);
      process.stdout.write(answerTo(line));
    }
  });
}

if (startupSnapshot?.isBuildingSnapshot()) {
  ready();
  startupSnapshot.setDeserializeMainFunction(serve);
} else {
  serve();
}
