"""KQL types of expressions and of the columns after each operator, as far as they follow from the query's form.

Names come from duckdb-kql's own rules. Used by `scope`; the return types of functions are facts of Kusto's reference
pages. An unknown type is never guessed: whoever needs one treats "" as "could be anything".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duckdb_kql import ir, schema  # noqa: TID253 - this module is about that library's query form
from duckdb_kql.errors import KqlSchemaError  # noqa: TID253
from duckdb_kql.translate import naming, print_column_name, summarize_names  # noqa: TID253

from sentinel_rag.workspace.kql.extension import AddedOperator, AddedSource, Frame

_BY_RESULT = {
    "string": """tostring tolower toupper strcat strcat_delim strcat_array substring replace_string replace_regex
        replace trim trim_start trim_end extract format_datetime format_timespan format_bytes format_ipv4
        format_ipv4_mask
        url_encode url_decode url_encode_component base64_encode_tostring base64_decode_tostring reverse translate tohex
        hash_md5 hash_sha1 hash_sha256 gettype make_string strrep parse_ipv6 parse_ipv6_mask dynamic_to_json
        current_cluster_endpoint current_database current_principal has_any_ipv4_text""",
    "long": """strlen indexof countof array_length tolong datetime_diff datetime_part hourofday dayofmonth dayofyear
        getyear getmonth monthofyear weekofyear week_of_year binary_and binary_or binary_xor binary_not
        binary_shift_left binary_shift_right parse_ipv4 parse_ipv4_mask ipv4_compare ipv6_compare ipv4_netmask_suffix
        array_index_of hash string_size rank_tdigest row_number row_rank_min row_rank_dense bitset_count_ones sign
        unicode_codepoint has_any_index""",
    "int": "toint",
    "real": """todouble toreal round_to sqrt exp log log10 log2 exp2 exp10 pow sin cos tan asin acos atan atan2 pi rand
        degrees radians gamma loggamma beta_cdf geo_distance_2points series_stats_value cot erf erfc""",
    "decimal": "todecimal",
    "bool": """not isempty isnotempty isnull isnotnull notnull notempty isnan isinf isfinite isascii isutf8 tobool
        toboolean ipv4_is_private ipv4_is_in_range ipv4_is_match ipv4_is_in_any_range ipv6_is_match ipv6_is_in_range
        has_ipv4 has_any_ipv4 has_ipv4_prefix has_any_ipv4_prefix bag_has_key set_has_element array_has
        datetime_is_valid""",
    "datetime": """now ago todatetime datetime_add startofday startofweek startofmonth startofyear endofday endofweek
        endofmonth endofyear make_datetime unixtime_seconds_todatetime unixtime_milliseconds_todatetime
        unixtime_microseconds_todatetime unixtime_nanoseconds_todatetime ingestion_time datetime_utc_to_local
        datetime_local_to_utc""",
    "timespan": "totimespan make_timespan dayofweek timespan",
    "guid": "toguid new_guid",
    "dynamic": """todynamic parse_json parse_xml parse_url parse_urlquery parse_csv parse_path parse_user_agent
        parse_command_line split extract_all extract_json_all pack bag_pack pack_dictionary pack_array pack_all bag_keys
        bag_merge bag_remove_keys bag_set_key bag_zip array_concat array_slice array_sort_asc array_sort_desc
        array_reverse array_split array_iff array_iif array_shift_left array_shift_right array_rotate_left
        array_rotate_right set_union set_intersect set_difference zip repeat range treepath geo_info_from_ip_address
        series_fill_linear series_fill_const series_fill_forward series_fill_backward series_add series_subtract
        to_utf8 unicode_codepoints_from_string jaccard_index_values regex_quote_all dynamic""",
}
_AGGREGATES_BY_RESULT = {
    "long": "count countif dcount dcountif count_distinct count_distinctif binary_all_and binary_all_or binary_all_xor",
    "real": "stdev stdevp stdevif variance variancep varianceif",
    "dynamic": """make_list make_set make_bag make_list_if make_set_if make_bag_if makelist makeset
        make_list_with_nulls buildschema hll hll_if hll_merge tdigest tdigest_merge percentiles_array
        percentilesw_array""",
}
_FUNCTION_TYPES = {name: kind for kind, names in _BY_RESULT.items() for name in names.split()}
_FUNCTION_TYPES |= {"pairs of bag": "dynamic", "value of key": "dynamic", "row text": "string"}
_AGGREGATE_TYPES = {name: kind for kind, names in _AGGREGATES_BY_RESULT.items() for name in names.split()}
_OF_FIRST_ARGUMENT = """bin floor ceiling bin_at bin_auto round abs min max any anyif take_any take_anyif minif maxif
    percentile percentiles percentilew percentilesw prev next row_cumsum avg avgif toscalar min_of max_of
    materialize""".split()  # noqa: SIM905 - a word list reads better than 27 quoted strings
_NUMERIC = ("int", "long", "real", "decimal")
_COMPARING = frozenset(("==", "!=", "<>", "=~", "!~", "<", "<=", ">", ">=", "and", "or"))
_ALIASES = {"date": "datetime", "time": "timespan", "double": "real", "boolean": "bool", "object": "dynamic"}
_ALIASES |= {"uuid": "guid", "uniqueid": "guid", "int64": "long", "int32": "int"}


def kql_name(written: str) -> str:
    """`double` -> `real`: the one name that a type goes by."""
    return _ALIASES.get(written.lower(), written.lower())


def expression_type(node: Any, frame: Mapping[str, str], tables: Mapping[str, Frame]) -> str:
    """The KQL type of a scalar expression or aggregate over `frame`, or "". `tables` holds tables and tabular lets."""
    if isinstance(node, (ir.Literal, ir.Parameter)):
        return "" if node.kind == "null" else kql_name(node.kind)
    if isinstance(node, ir.ColumnRef):
        return frame.get(node.name, "")
    if isinstance(node, ir.LetRef):
        return frame[node.name] if node.name in frame else expression_type(node.value, frame, tables)
    if isinstance(node, (ir.InList, ir.HasList, ir.Between)):
        return "bool"
    if isinstance(node, ir.PathAccess):
        return "dynamic"
    if isinstance(node, ir.UnaryOp):
        return "bool" if node.op in ("not", "!") else expression_type(node.operand, frame, tables)
    if isinstance(node, ir.ToScalar):
        produced = query_frame(node.query, tables)
        return next(iter(produced.values()), "") if produced else ""
    if isinstance(node, ir.BinaryOp):
        return _operator_type(node, frame, tables)
    if isinstance(node, ir.FunctionCall):
        return _call_type(node, frame, tables)
    return ""


def _operator_type(node: ir.BinaryOp, frame: Mapping[str, str], tables: Mapping[str, Frame]) -> str:
    if node.op in _COMPARING or node.op not in ("+", "-", "*", "/", "%"):
        return "bool"
    left = expression_type(node.left, frame, tables)
    right = expression_type(node.right, frame, tables)
    kinds = {left, right}
    if "" in kinds or "dynamic" in kinds:
        return ""
    if left == "datetime":
        return "timespan" if right == "datetime" and node.op == "-" else "datetime"
    if kinds == {"timespan"}:
        return "real" if node.op == "/" else "timespan"
    if "timespan" in kinds:
        return "datetime" if "datetime" in kinds else "timespan"
    for kind in ("decimal", "real", "long"):
        if kind in kinds:
            return "real" if kinds == {"decimal", "real"} else kind
    return "int" if kinds == {"int"} else ""


def _call_type(node: ir.FunctionCall, frame: Mapping[str, str], tables: Mapping[str, Frame]) -> str:
    name = node.name.lower()
    known = _FUNCTION_TYPES.get(name) or _AGGREGATE_TYPES.get(name)
    if known:
        return known
    kinds = [expression_type(argument, frame, tables) for argument in node.args]
    if name in ("iff", "iif") and len(kinds) == 3:
        return _common(kinds[1:])
    if name == "case" and len(kinds) >= 3:
        return _common([*kinds[1:-1:2], kinds[-1]])
    if name == "coalesce":
        return _common(kinds)
    if name in ("sum", "sumif") and kinds:
        return "long" if kinds[0] == "int" else kinds[0]
    if name in ("avg", "avgif") and kinds:
        return "real" if kinds[0] in ("int", "long") else kinds[0]
    if name in ("column_ifexists", "columnifexists") and len(kinds) == 2:
        return kinds[1]
    if name in _OF_FIRST_ARGUMENT and kinds:
        return _binned(name, kinds)
    return ""


def _binned(name: str, kinds: list[str]) -> str:
    if name in ("bin", "floor") and len(kinds) == 2 and kinds[0] in _NUMERIC and kinds[1] in _NUMERIC:
        return max(kinds, key=_NUMERIC.index)
    if name in ("min_of", "max_of"):
        return _common(kinds)
    return "" if kinds[0] == "dynamic" and name not in ("any", "take_any", "anyif", "take_anyif") else kinds[0]


def _common(kinds: list[str]) -> str:
    """The type of branches: theirs if they agree, the wider number if they are numbers, else not known."""
    found = set(kinds)
    if len(found) == 1:
        return kinds[0]
    if found <= set(_NUMERIC):
        return max(found, key=_NUMERIC.index)
    return ""


def source_frame(source: ir.Source, tables: Mapping[str, Frame]) -> Frame | None:
    """The frame of what a pipeline starts from, or None if its columns are not known."""
    if isinstance(source, ir.TableRef) and source.database is None:
        found = tables.get(source.name)
        return dict(found) if found is not None else None
    if isinstance(source, ir.DataTable):
        return {name: kql_name(kind) for name, kind in source.columns}
    if isinstance(source, ir.RangeSource):
        return {source.name: range_type(source, tables)}
    if isinstance(source, ir.PrintSource):
        return {
            print_column_name(named, position): expression_type(named.expr, {}, tables)
            for position, named in enumerate(source.expressions)
        }
    if isinstance(source, AddedSource):
        typed = getattr(source, "types", None)
        return dict(zip(source.columns(), typed or [""] * len(source.columns()), strict=True))
    try:
        return dict.fromkeys(schema._source_columns(source, _names(tables)), "")
    except KqlSchemaError:
        return None


def range_type(source: ir.RangeSource, tables: Mapping[str, Frame] | None = None) -> str:
    """The type of what `range` makes: of its start, or of its step if that is the wider number."""
    kinds = [expression_type(bound, {}, tables or {}) for bound in (source.start, source.step)]
    return _common(kinds) if kinds[0] in _NUMERIC else kinds[0]


def query_frame(query: ir.Query, tables: Mapping[str, Frame]) -> Frame | None:
    """The frame after the last operator of `query`."""
    known = dict(tables)
    for name, bound in query.lets:
        if isinstance(bound, ir.Query):
            produced = query_frame(bound, known)
            known.pop(name, None)
            if produced is not None:
                known[name] = produced
    frame = source_frame(query.source, known)
    for operator in query.operators:
        if frame is None:
            return None
        frame = operator_frame(operator, frame, known)
    return frame


def operator_frame(operator: ir.Operator, frame: Frame, tables: Mapping[str, Frame]) -> Frame | None:
    """The frame after `operator`, or None if its columns cannot be known. Raises what the library raises."""
    if isinstance(operator, (ir.Where, ir.Take, ir.Sort, ir.Top)):
        return frame
    operator = schema.resolve_let_refs(operator, list(frame))
    if isinstance(operator, AddedOperator):
        typed = getattr(operator, "frame", None)
        if typed is not None:
            produced: Frame | None = typed(frame, tables)
            return produced
    nested = isinstance(operator, (ir.Join, ir.Lookup, ir.Union, AddedOperator))
    names = schema._operator_columns(operator, list(frame), _names(tables) if nested else {})
    types = {name: frame.get(name, "") for name in names}
    types.update(_made(operator, frame, tables))
    return {name: types[name] for name in names}


def _made(operator: ir.Operator, frame: Frame, tables: Mapping[str, Frame]) -> dict[str, str]:
    """Types of the columns that `operator` makes anew."""
    if isinstance(operator, (ir.Project, ir.Extend, ir.Distinct)):
        if isinstance(operator, ir.Extend):
            names = naming.extend_names(operator.expressions, list(frame))
        elif isinstance(operator, ir.Project):
            names = naming.project_names(operator.expressions)
        else:
            names = naming.distinct_names(operator.expressions)
        return {
            name: expression_type(named.expr, frame, tables)
            for name, named in zip(names, operator.expressions, strict=True)
        }
    if isinstance(operator, ir.Summarize):
        return _summarized(operator, frame, tables)
    if isinstance(operator, ir.ProjectRename):
        return {new: frame.get(old, "") for old, new in operator.renames}
    if isinstance(operator, ir.MvExpand):
        made = {target.name or target.column: kql_name(target.to_type or "dynamic") for target in operator.targets}
        return made | ({operator.item_index: "long"} if operator.item_index else {})
    if isinstance(operator, ir.Parse):
        return {segment.name: kql_name(segment.type or "string") for segment in operator.segments if segment.name}
    if isinstance(operator, ir.GetSchema):
        kinds = ("string", "long", "string", "string")
        return dict(zip(("ColumnName", "ColumnOrdinal", "DataType", "ColumnType"), kinds, strict=True))
    if isinstance(operator, ir.Count):
        return {operator.name: "long"}
    if isinstance(operator, (ir.Join, ir.Lookup)):
        return _joined(operator, frame, tables)
    if isinstance(operator, ir.Union):
        return _united(operator, frame, tables)
    return {}


def _summarized(operator: ir.Summarize, frame: Frame, tables: Mapping[str, Frame]) -> dict[str, str]:
    keys, aggregates = summarize_names(operator, list(frame))
    made = {name: expression_type(key.expr, frame, tables) for name, key in zip(keys, operator.by, strict=True)}
    for names, named in zip(aggregates, operator.aggregates, strict=True):
        call = named.expr
        if isinstance(call, ir.FunctionCall) and call.name.lower() in ("arg_max", "arg_min", "take_any", "any"):
            expanded = len(names) > 1 or any(isinstance(argument, ir.Wildcard) for argument in call.args)
            if expanded or len(call.args) > 1:
                made.update(_of_row(names, call, frame, tables))
                continue
        made.update(dict.fromkeys(names, expression_type(call, frame, tables)))
    return made


def _of_row(names: list[str], call: ir.FunctionCall, frame: Frame, tables: Mapping[str, Frame]) -> dict[str, str]:
    """`arg_max(a, b, *)`: each name is a column of the row, or the argument at its place."""
    made = {}
    for position, name in enumerate(names):
        argument = call.args[position] if position < len(call.args) else None
        if name in frame:
            made[name] = frame[name]
        elif argument is not None and not any(isinstance(a, ir.Wildcard) for a in call.args[: position + 1]):
            made[name] = expression_type(argument, frame, tables)
        else:
            made[name] = frame.get(name.rstrip("0123456789"), "")
    return made


def _joined(operator: ir.Join | ir.Lookup, frame: Frame, tables: Mapping[str, Frame]) -> dict[str, str]:
    right = query_frame(operator.right, tables)
    if right is None:
        return {}
    if isinstance(operator, ir.Lookup):
        dropped = {key.right for key in operator.keys}
        kept = [name for name in right if name not in dropped]
        names = schema.lookup_output_columns(list(frame), list(right), [key.right for key in operator.keys])
        return dict(zip(names[len(frame) :], (right[name] for name in kept), strict=True))
    if operator.kind in schema._LEFT_ONLY:
        return {}
    if operator.kind in schema._RIGHT_ONLY:
        return dict(right)
    names = schema.join_output_columns(list(frame), list(right), operator.kind)
    return dict(zip(names[len(frame) :], right.values(), strict=True))


def _united(operator: ir.Union, frame: Frame, tables: Mapping[str, Frame]) -> dict[str, str]:
    made = {operator.with_source: "string"} if operator.with_source else {}
    for branch in operator.branches:
        produced = query_frame(branch, tables)
        for name, kind in (produced or {}).items():
            if name not in frame and name not in made:
                made[name] = kind
            elif (frame.get(name) or made.get(name)) != kind:
                made[name] = ""
    return made


def _names(tables: Mapping[str, Frame]) -> dict[str, list[str]]:
    return {name: list(frame) for name, frame in tables.items()}
