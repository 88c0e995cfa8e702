"""The tools run_kql_query and list_kql_templates."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow, invalid_argument
from sentinel_rag.language.attack import known_techniques
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.arguments import nearest_hint, since_before, window_from
from sentinel_rag.sentinel.logs.kql_literals import NameReading, read_name, readings_summary
from sentinel_rag.sentinel.logs.log_analytics import LogsTable, json_cell
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.templates.template_registry import KqlTemplate, TemplateParameter
from sentinel_rag.sentinel.workspace_view import FEW_ROWS, WorkspaceView, build_result, delay_notes, told_result

MOST_ROWS_COUNTED = 10_000
"""A template's rows are counted up to here; beyond, the total is unknown and the result says so."""
_LOOK_BACK = timedelta(days=30)
_LIST_COLUMNS = (
    Column("name", "string"),
    Column("description", "string"),
    *(Column(name, "dynamic") for name in ("tables", "parameters", "questions", "tactics", "techniques")),
)
_BRIEF = ("name", "description", "parameters")


class TemplateTools:
    """Runs and lists the templates of one registry."""

    def __init__(self, templates: Mapping[str, KqlTemplate]) -> None:
        self._templates = templates

    async def run_kql_query(self, view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
        """Rows of the template in its own columns; times in ISO 8601."""
        template = self._named(arguments["template"])
        chosen = window_from(arguments, view.clock())
        kql = template.render(arguments.get("parameters", {}), chosen.window)
        tables = template.tables_of(arguments.get("parameters", {}))
        if tables != template.tables:
            arguments = await _with_columns(view, template, arguments, tables[0])
            kql, tables = template.render(arguments["parameters"], chosen.window), (arguments["parameters"]["table"],)
        span = api_span(template, chosen.window)
        answer, statistics = await together(
            lambda: view.logs.query(bounded(kql), span),
            lambda: view.statistics.read(tables[0], template.time_column),
        )
        given = {} if answer.rows else arguments.get("parameters", {})
        readings = [
            reading
            for parameter, query in names_asked(template, given)
            if (reading := name_in(parameter, given, await view.logs.query(query, names_span(chosen.window))))
        ]
        meant = {reading.what: reading.used for reading in readings if reading.used is not None}
        if meant:
            kql = template.render({**arguments.get("parameters", {}), **meant}, chosen.window)
            answer = await view.logs.query(bounded(kql), span)
        total = rows_counted(answer)
        late = await delay_notes(view, tables[0], chosen.window)
        uncounted = () if total is not None else (not_counted(answer),)
        summary: dict[str, JsonValue] = {"template": template.name, "description": template.description}
        if template.filters:
            summary["filters"] = [*template.filters]
        totals = totals_of(template, answer)
        if totals:
            summary["totals"] = totals
        summary |= readings_summary(*readings)
        return build_result(
            answer.columns,
            json_rows(answer, arguments["limit"], offset=arguments["offset"]),
            tables=tables,
            window=chosen.window,
            time_column=template.time_column,
            rows_total=total,
            answers=(answer,),
            statistics=statistics,
            summary=summary,
            notes=(
                *chosen.notes,
                *late,
                *uncounted,
                *(reading.note(" and ".join(tables)) for reading in readings),
                *_compared(template, arguments, answer, {reading.what for reading in readings}),
            ),
        )

    async def list_kql_templates(self, view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
        """One row for each template that `search` finds; no query runs."""
        templates = tuple(self._templates.values())
        found, whole = found_templates(arguments.get("search", ""), templates)
        full = arguments["detail"] == "full" or len(found) <= FEW_ROWS
        offset = arguments["offset"]
        page = found[offset : offset + arguments["limit"]]
        return told_result(
            _LIST_COLUMNS if full else tuple(column for column in _LIST_COLUMNS if column.name in _BRIEF),
            [template.to_row() if full else template.to_brief_row() for template in page],
            summary={"templates": len(self._templates), "found": len(found), "detail": "full" if full else "compact"},
            rows_total=len(found),
            notes=() if whole else _not_whole(arguments["search"], templates, any_found=bool(found)),
        )

    def _named(self, name: str) -> KqlTemplate:
        template = self._templates.get(name)
        if template is None:
            names = tuple(self._templates)
            raise invalid_argument(
                "template",
                f"There is no template {name!r}.{nearest_hint(name, names)}",
                allowed=names,
                next_step="list_kql_templates tells what each template answers.",
            )
        return template


async def _with_columns(
    view: WorkspaceView, template: KqlTemplate, arguments: Mapping[str, Any], table: str
) -> dict[str, Any]:
    """The arguments with the names of a table and of its columns as the workspace writes them.

    Raises QueryFailedError INVALID_ARGUMENT with the nearest names for one that is not there."""
    name, columns = await view.schema.table(table)
    written = {column.casefold(): column for column in columns}
    given = {**arguments["parameters"], "table": name}
    for parameter in template.parameters:
        said = given.get(parameter.name)
        if parameter.name in _COLUMNS and said:
            if str(said).casefold() not in written:
                told = f"The table {name} has no column {said!r}.{nearest_hint(str(said), tuple(columns))}"
                raise invalid_argument(f"parameters.{parameter.name}", told, allowed=tuple(columns))
            given[parameter.name] = written[str(said).casefold()]
    return {**arguments, "parameters": given}


_COLUMNS = ("column", "by", "sum")
"""Parameters that name a column of the table which another one names."""


def bounded(kql: str) -> str:
    """The query with the bound up to which its rows are counted."""
    return f"{kql}\n| take {MOST_ROWS_COUNTED + 1}"


def names_asked(template: KqlTemplate, given: Mapping[str, Any]) -> Iterator[tuple[TemplateParameter, str]]:
    """For each name among the parameters of a run without rows the query for those like it."""
    for parameter in template.parameters:
        if parameter.names and given.get(parameter.name):
            yield parameter, template.names_query(parameter, given[parameter.name])


def names_span(window: TimeWindow) -> TimeWindow:
    """When the names were in use: a name without a row in the window may have one before it."""
    return since_before(window, _LOOK_BACK)


def name_in(parameter: TemplateParameter, given: Mapping[str, Any], names: LogsTable) -> NameReading | None:
    """What a parameter's name stands for; None where not all names came."""
    return None if names.partial else read_name(parameter.name, given[parameter.name], map(str, names.column("Name")))


def _compared(
    template: KqlTemplate, arguments: Mapping[str, Any], answer: LogsTable, read: Collection[str]
) -> list[CodedNote]:
    """What the text parameters of a run without rows are compared with, but for the names that were `read`: a text may
    be written in another way."""
    given = () if answer.rows else arguments.get("parameters", {})
    texts = (each for each in template.parameters if each.name in given and each.type == "string")
    return [
        note("nothing_matches_parameter", parameter=each.name, description=each.description)
        for each in texts
        if each.name not in read
    ]


def rows_counted(answer: LogsTable) -> int | None:
    """How many rows a bounded query has; None if there are more than are counted."""
    return None if len(answer.rows) > MOST_ROWS_COUNTED or answer.partial else len(answer.rows)


def not_counted(answer: LogsTable) -> CodedNote:
    """The sentence for rows without a total."""
    return note("rows_not_counted", count=len(answer.rows) - 1)


def json_rows(answer: LogsTable, limit: int, *, offset: int = 0) -> list[dict[str, JsonValue]]:
    """The first rows behind `offset` by column name; times in ISO 8601."""
    return [
        {name: json_cell(value) for name, value in record.items()}
        for record in itertools.islice(answer.records(), offset, offset + limit)
    ]


def totals_of(template: KqlTemplate, answer: LogsTable) -> dict[str, JsonValue]:
    """The sums of the template's counts over every row, shown or not; nothing where not every row was counted."""
    if rows_counted(answer) is None:
        return {}
    totals: dict[str, JsonValue] = {}
    for name in template.totals if answer.columns else ():
        values = [value for value in answer.column(name) if value is not None]
        whole = all(isinstance(value, int) for value in values)
        totals[name] = sum(values) if whole else round(math.fsum(values), 6)
    return totals


def api_span(template: KqlTemplate, window: TimeWindow) -> TimeWindow:
    """The span of TimeGenerated to read: the window itself, or wider where the template collapses versions first. A
    watchlist is read as it is now, whenever the rows are of that it is held against."""
    if template.window_on == "TimeGenerated":
        return window
    wide = since_before(window, _LOOK_BACK)
    return TimeWindow(wide.start, None) if _WATCHLISTS in template.tables else wide


_WATCHLISTS = "Watchlist"


# Finding templates by words of a question, for list_kql_templates.


_WORD = re.compile(r"[^\W_]+(?:\.\d+)?")
_JOINED = re.compile(r"[A-Z][a-z]+(?=[A-Z])|(?<=[a-z])[A-Z][a-z]+")
_NEAR_BEST, _FITS = 0.75, 0.4
_SHORTEST_STEM, _LONGEST_ENDING = 4, 3
MOST_NEAR = 10
"""Templates that are named where none has a word of the search."""


def found_templates(search: str, templates: Sequence[KqlTemplate]) -> tuple[Sequence[KqlTemplate], bool]:
    """The templates that fit `search` best, best first, and whether one of them has every word. Without a
    word in `search` all templates; without a template for any word none.

    A word weighs more the fewer templates hold it, so that "country" counts for more than "by". Behind those near the
    best come some that fit less, as many as are told whole.
    """
    words = set(_words((search,)))
    if not words:
        return templates, True
    held = {template.name: frozenset(_words(_texts(template))) for template in templates}
    holders = {word: {name for name in held if _holds(held[name], word)} for word in words}
    weights = {word: math.log(1 + len(templates) / len(names)) for word, names in holders.items() if names}
    scores = {name: sum(weight for word, weight in weights.items() if name in holders[word]) for name in held}
    best = max(scores.values(), default=0)
    ranked = sorted(templates, key=lambda template: -scores[template.name])
    found = [
        template
        for place, template in enumerate(ranked)
        if best and scores[template.name] >= best * (_FITS if place < FEW_ROWS else _NEAR_BEST)
    ]
    return found, bool(found) and all(holders.values()) and best >= sum(weights.values()) * (1 - 1e-9)


def _not_whole(search: str, templates: Sequence[KqlTemplate], *, any_found: bool) -> tuple[CodedNote, ...]:
    """What to say where no template has every word; where none has any, with those that serve a tactic of the technique
    which the search names."""
    if any_found:
        return (note("not_every_word"),)
    words = set(_words((search,)))
    named = [
        each
        for each in known_techniques().values()
        if (held := frozenset(_words((each.name,)))) and all(_holds(held, word) for word in words)
    ]
    tactics = dict.fromkeys(tactic for each in named for tactic in each.tactics)
    near = [template.name for template in templates if not tactics.keys().isdisjoint(template.tactics)]
    if not near:
        return (note("no_template"),)
    told = note("templates_near", technique=named[0].id, tactics=[*tactics], near=near[:MOST_NEAR])
    return note("no_template"), told


def _texts(template: KqlTemplate) -> Iterable[str]:
    yield from (template.name, template.description)
    yield from (parameter.name for parameter in template.parameters)
    for texts in (template.tables, template.questions, template.tactics, template.techniques):
        yield from texts


def _words(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        yield from _WORD.findall(text.casefold().replace("-", ""))
        yield from (part.casefold() for part in _JOINED.findall(text))


def _holds(held: Collection[str], word: str) -> bool:
    """Whether one of the words is `word` in another form: "countries" and "country", "signin" and "sign-ins"."""
    return word in held or any(_same_stem(*sorted((word, other), key=len)) for other in held)


def _same_stem(shorter: str, longer: str) -> bool:
    if not (shorter + longer).isalpha():
        return longer.startswith(f"{shorter}.")  # T1562 is no form of T1566, but T1566.001 is one
    common = next((place for place, letter in enumerate(shorter) if letter != longer[place]), len(shorter))
    return common >= max(_SHORTEST_STEM, len(shorter) - 1) and len(longer) - common <= _LONGEST_ENDING
