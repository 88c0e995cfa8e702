"""Answers out of the results of a plan: which view shows them, Yes or No before them, what did not succeed behind them.

Views are data (`views.toml`); here stands what data cannot say of single results. Nothing here plans or calls anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sentinel_rag.agent.answers import failures
from sentinel_rag.agent.answers.renderer import (
    BLOCKS,
    RenderedView,
    Scene,
    elements,
    escape,
    render,
    say_numbered,
    say_partial,
    table_of,
    tell,
    view_data,
)
from sentinel_rag.agent.answers.writer import AnswerWriter, Echo, Fact, Line, Part, phrase
from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.offline import comparing, computed, query_rows, related
from sentinel_rag.agent.offline.attributes import attribute_of, entities_of, kinds_of
from sentinel_rag.agent.offline.workspaces import section_of
from sentinel_rag.agent.planner import offer
from sentinel_rag.agent.planner.decisions import WITHOUT, Plan, View
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ALERT, INCIDENT, alert_item, entity_item
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.file_tools import BUNDLED_SAMPLE
from sentinel_rag.contracts.tool_calls import Failed
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.language.frames import Frame

MOST_BUCKETS, MOST_LINES, MOST_PAGES, MOST_TEXTS = 60, 60, 5, 5
IN_SENTENCE, MOST_ENTITIES, MOST_SHOWN, MOST_ARTEFACTS = 5, 15, 5, 100
"""Entities that are named in a sentence, at most where their kind was asked for, and where the whole incident was."""
WHO_AND_WHERE = ("account", "host")
"""Kinds that the whole of an incident tells in its text; the others stand in a table that is shown on demand."""


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> RenderedView:
    """The answer to a plan. Facts of the calls that worked come first, then what did not."""
    for sentence in plan.opening:
        writer.fixed(sentence)
    worked = [run for run in runs if run.worked]
    composed = RenderedView()
    if plan.view is View.SUMMARY and plan.frame.has("compared") and len(worked) == 2:
        _table_of_periods(writer, worked)
    together = _TOGETHER.get(plan.view)
    if together is not None and worked:
        composed = together(writer, plan, worked)
    else:
        for place, run in enumerate(worked):
            part = _section(writer, plan, run, section_of(run, runs))
            composed = part if place == 0 else _joined(composed, part)
    if (
        plan.frame.has("talk:draw")
        and any(run.rows for run in worked)
        and not any(each.picture for each in writer.tables)
    ):
        writer.fixed(view_data()["sentence"]["not_drawn"])
    failed = [run for run in runs if not run.worked]
    if failed:
        sections = {run.call.call_id: section_of(run, runs) for run in failed}
        outcome = failures.say_failures(writer, failed, some_worked=bool(worked), sections=sections)
        composed = replace(composed, outcome=composed.outcome if worked else outcome)
    return composed


def _table_of_periods(writer: AnswerWriter, runs: Sequence[ToolRun]) -> None:
    """The counts of two periods beside each other, with what the later one has more or less."""
    counts = {"Incidents": "incidents/total", "Open of these": "incidents/open", "Alerts": "alerts/total"}
    counts |= {f"{severity} alerts": f"alerts/by_severity/{severity}" for severity in reversed(SEVERITIES)}
    rows = []
    for name, at in counts.items():
        cells = [writer.cell(run, f"/summary/{at}") for run in runs]
        later, earlier = (int(str(run.at(f"/summary/{at}") or 0)) for run in runs)
        values = tuple(value for cell in cells for value in cell.values)
        rows.append([Fact(name), *cells, Fact(f"{later - earlier:+d}" if later != earlier else "0", values)])
    writer.table("The two periods", ("What", "Later", "Earlier", "Change"), rows)


def _section(writer: AnswerWriter, plan: Plan, run: ToolRun, workspace: str) -> RenderedView:
    """One result; lines and tables of a `workspace` among several say that they are of it."""
    if not workspace:
        return _one(writer, plan, run)
    writer.say("In workspace {}:", Echo(workspace))
    above = len(writer.tables)
    composed = _one(writer, replace(plan, section=True), run)
    for place, table in enumerate(writer.tables[above:], start=above):
        title = f"{table.title} in workspace {workspace}" if table.title else f"Workspace {workspace}"
        writer.tables[place] = replace(table, title=title)
    # A number may be another incident's in the next workspace.
    items = tuple(replace(each, value=each.guid or each.value) for each in composed.items)
    return replace(composed, items=items, suggestions=())


def _joined(first: RenderedView, second: RenderedView) -> RenderedView:
    """Two answers of one turn: lists follow each other, an answer beats an empty one."""
    return replace(
        first,
        outcome=first.outcome if first.outcome is Outcome.ANSWERED else second.outcome,
        items=first.items + second.items,
        incident=second.incident or first.incident,
        offers=first.offers or second.offers,
        suggestions=first.suggestions or second.suggestions,
    )


def _one(writer: AnswerWriter, plan: Plan, run: ToolRun) -> RenderedView:
    special = {View.INCIDENT: incident_view, View.ANALYSIS: _analysis, View.ALERT: _alert, View.EVENTS: _events,
               View.TEMPLATES: _templates, View.TABLES: _tables,
               View.NEIGHBOUR: related.compose_neighbour}.get(plan.view)  # fmt: skip
    return special(writer, plan, run) if special else render(writer, plan, run, plan.view.value, **_parts(plan, run))


def _parts(plan: Plan, run: ToolRun) -> dict[str, Part]:
    """What the lines of a view name and the result does not hold."""
    data, arguments = view_data(), run.call.arguments
    match plan.view:
        case View.INCIDENTS:
            return {"order": Fact(data["order"].get(str(arguments.get("order", "severity")), ""))}
        case View.TREND:
            return {"interval": Fact(data["interval"].get(str(run.at("/summary/interval")), "bucket"))}
        case View.TOP:
            kind = str(arguments["kind"])
            leads = not plan.first and not any(each.startswith(WITHOUT) for each in plan.aspects)
            noun = Fact(data["plural"].get(kind, f"{kind} entities"))
            return {"noun": noun, "leads": Fact("")} if leads else {"noun": noun}
        case View.KQL:
            given = arguments.get("parameters")
            values = given.items() if isinstance(given, Mapping) else ()
            told = [Echo(f"{name} {value}" if isinstance(value, int) else str(value)) for name, value in values]
            return {"for": phrase(f" for {', '.join('{}' for _ in told)}", *told) if told else Fact("")}
        case View.WEB | View.FILE | View.FILES:
            return {"sample": Fact("")} if BUNDLED_SAMPLE in (run.at("/source"), run.at("/results/0/source")) else {}
        case _:
            return {}


def _tables(writer: AnswerWriter, plan: Plan, run: ToolRun) -> RenderedView:
    """The tables that hold rows; of those that the question names, how many rows each holds and no others."""
    wanted = plan.frame.all("table")
    places = {str(row.get("table")).casefold(): f"/rows/{place}" for place, row in enumerate(run.rows)}
    if not wanted or not run.rows:
        return render(writer, plan, run, "tables", how_to_fill=Fact(view_data()["sentence"]["how_to_fill"]))
    for name in wanted:
        held = places.get(name.casefold())
        scene = Scene(writer, run, plan, at=held or "", parts={"asked": Echo(name)})
        tell(scene, ["@rows_of_table" if held else "@no_rows_of_table"])
    tell(Scene(writer, run, plan), [*(["@counts_no_window"] if plan.frame.window else []), "@partial"])
    return RenderedView()


# --- one incident


def incident_view(writer: AnswerWriter, plan: Plan, run: ToolRun) -> RenderedView:
    """One incident whole or in the fields asked for; several that fit are asked back."""
    if run.call.tool_name == "query_incidents":
        return render(writer, plan, run, "chosen_by_title")
    if len(run.rows) != 1 or not (not plan.aspects or "everything" in plan.aspects):
        return render(writer, plan, run, "incident")
    question = view_data()["sentence"]["analysis_offer"]
    composed = render(writer, plan, run, "incident", whole=Fact(""), offer=Fact(question))
    return replace(composed, offers=(offer(question, "get_incident_detail", run.call.arguments, View.ANALYSIS),))


def _say_identity(scene: Scene, _: str) -> None:
    """Which incident it is, and by what it was found where that is not its number."""
    writer, run = scene.writer, scene.run
    matched, asked = str(run.at("/summary/matched_by") or ""), str(run.call.arguments["incident"]).lstrip("#")
    if "ids" in scene.plan.aspects or (matched and matched != "incident_number"):
        fact = writer.number(run, "/summary/matched_by")
        meaning = fact.shown_as(view_data()["matched_by"].get(matched, fact.text))
        if matched == "incident_number":
            writer.say("{} is {}.", Echo(asked), meaning)
        else:
            number = writer.number(run, "/rows/0/number")
            writer.say("{} is {}: it is Sentinel incident {}.", Echo(asked), meaning, number)
    tell(scene, ["Incident {n number}: {q title}."])


def _say_fields(scene: Scene, _: str) -> None:
    """The fields that were asked for, by their names in `views.toml`, `entities:KIND` or `values:PROPERTY`."""
    for aspect in scene.plan.aspects:
        name, colon, value = aspect.partition(":")
        if name == "values":
            related.say_values_of_incident(scene, value)
        elif colon and value:
            _say_entities(scene, value, MOST_ENTITIES, asked=True)
        elif colon:
            for kind in kinds_of(scene.run):
                _say_entities(scene, kind, MOST_ENTITIES)
        elif aspect != "everything":
            tell(scene, [f"@{aspect}"])


def _say_who_and_where(scene: Scene, _: str) -> None:
    """The accounts and hosts that are not told yet, a few of each."""
    told = {aspect.partition(":")[2] for aspect in scene.plan.aspects if aspect.startswith("entities:")}
    begun = len(scene.writer.lines)
    for kind in WHO_AND_WHERE:
        if kind in kinds_of(scene.run) and kind not in told:
            _say_entities(scene, kind, MOST_SHOWN)
    scene.writer.goes_on(begun + 1)


def _say_artefacts(scene: Scene, _: str) -> None:
    """Addresses, files, hashes and all else that the incident names, on demand."""
    writer, run = scene.writer, scene.run
    kinds = [kind for kind in kinds_of(run) if kind not in WHO_AND_WHERE]
    places = [(kind, at) for kind in kinds for at, _ in entities_of(run, kind)]
    labels = view_data()["kinds"]
    rows = [
        [Fact(labels.get(kind, kind)), writer.cell(run, f"{at}/name", limit=300), writer.cell(run, f"{at}/alerts")]
        for kind, at in places[:MOST_ARTEFACTS]
    ]
    if rows:
        title = (
            "Addresses, files and the like" if len(rows) == len(places) else "The first addresses, files and the like"
        )
        writer.table(title, ("Kind", "Name", "Alerts"), rows, folded=True)


def _say_ids_table(scene: Scene, names: str) -> None:
    """Ids, addresses in portals, times of the row and techniques, on demand."""
    writer, run, labels = scene.writer, scene.run, view_data()["id_labels"]
    rows = []
    for name in names.split():
        at = f"{scene.at}/{name}"
        cell = writer.time_cell(run, at) if name.endswith("_time") else writer.cell(run, at, limit=600)
        if cell.values:
            rows.append([Fact(labels[name]), cell])
    writer.table("Ids and addresses", ("What", "Value"), rows, folded=True)


def _say_entities(scene: Scene, kind: str, most: int, *, asked: bool = False) -> None:
    """The entities of one kind, a few in a sentence; of one that was `asked` for also that there are none, and a table
    of more."""
    writer, run, base = scene.writer, scene.run, f"/rows/0/entities/{escape(kind)}"
    names, label = (
        [f"{base}/{place}/name" for place in range(len(elements(run, base)))],
        view_data()["kinds"].get(kind, kind),
    )
    if not names:
        if asked:
            writer.say_compared([(run, "/rows/0")], f"{label}: none recorded.")
        return
    counted = f"/rows/0/entity_counts/{escape(kind)}"
    count = writer.number(run, counted) if run.at(counted) is not None else writer.count(run, base)
    facts = [writer.exact(run, name, limit=200) for name in names[:most]]
    if asked and len(names) > IN_SENTENCE:
        writer.say(f"{label}: {{}}, in the table below.", count)
        title = label if count.text == str(len(names)) else f"The first {label}"
        rows = [[writer.cell(run, at, limit=300), writer.cell(run, f"{at.removesuffix('name')}alerts")] for at in names]
        writer.table(title, ("Name", "Alerts"), rows)
    elif len(names) > most:
        writer.say(f"{label} ({{}} in all, the first of them here): {{}}.", count, facts)
    elif asked:
        writer.say(f"{label} ({{}}): {{}}.", count, facts)
    else:
        writer.say(f"{label}: {{}}.", facts)


TACTICS = (
    "Reconnaissance", "ResourceDevelopment", "InitialAccess", "Execution", "Persistence", "PrivilegeEscalation",
    "DefenseEvasion", "CredentialAccess", "Discovery", "LateralMovement", "Collection", "CommandAndControl",
    "Exfiltration", "Impact",
)  # fmt: skip
"""MITRE ATT&CK enterprise tactics in the order of the matrix, as Sentinel spells them."""
_HARM = ("Exfiltration", "Impact")
_SPREAD = ("LateralMovement", "Collection", "CommandAndControl", "CredentialAccess")
_THAT_TIE = ("account", "host", "ip", "url", "file", "process")


def _analysis(writer: AnswerWriter, plan: Plan, run: ToolRun) -> RenderedView:
    """What the recorded facts of one incident suggest, by fixed rules."""
    return render(writer, plan, run, "analysis") if len(run.rows) == 1 else incident_view(writer, plan, run)


def _say_stages(scene: Scene, _: str) -> None:
    """Its tactics in the order of ATT&CK, and what the last of them means."""
    writer, run = scene.writer, scene.run
    known = {name.lower(): place for place, name in enumerate(TACTICS)}
    found = [str(each).replace(" ", "") for each in elements(run, "/rows/0/tactics")]
    ordered = sorted(range(len(found)), key=lambda place: known.get(found[place].lower(), len(known)))
    if not ordered:
        none = "No tactics are recorded, so the stage of the attack cannot be told from the alerts."
        writer.say_compared([(run, "/rows/0")], none)
        return
    facts = [writer.number(run, f"/rows/0/tactics/{place}") for place in ordered]
    writer.say("In the order of the ATT&CK matrix its alerts cover: {}.", facts)
    if found[ordered[-1]] in _HARM:
        writer.fixed("The last of these tactics means that harm may have been done already; look at it first.")
    elif found[ordered[-1]] in _SPREAD:
        writer.fixed("The last of these tactics means that the attacker may hold more than the first machine.")


def _say_shared_entities(scene: Scene, _: str) -> None:
    """Entities that tie its alerts together."""
    writer, run = scene.writer, scene.run
    places = [at for kind in kinds_of(run) if kind in _THAT_TIE for at, _ in entities_of(run, kind)]
    shared = [(count, at) for at in places if isinstance(count := run.at(f"{at}/alerts"), int) and count > 1]
    shared.sort(key=lambda each: -each[0])
    if not shared:
        writer.say_compared([(run, "")], "No entity is shared by several of its alerts; they may be separate events.")
        return
    writer.fixed("Entities that several of its alerts share, which tie them together:")
    rows = [[writer.cell(run, f"{at}/alerts"), writer.cell(run, f"{at}/name", limit=200)] for _, at in shared[:10]]
    writer.table("Shared entities", ("Alerts", "Entity"), rows)


# --- alerts


def _alert(writer: AnswerWriter, plan: Plan, run: ToolRun) -> RenderedView:
    """One alert, found through its incident; `plan.alert_id` names it."""
    for row in range(len(run.rows)):
        for place, alert in enumerate(elements(run, f"/rows/{row}/alerts")):
            if isinstance(alert, Mapping) and str(alert.get("alert_id", "")).lower() == plan.alert_id.lower():
                scene = Scene(writer, run, plan, f"/rows/{row}/alerts/{place}", f"/rows/{row}")
                _say_alert(scene, plan.aspects[0] if plan.aspects else "")
                number = run.at(f"/rows/{row}/number")
                return RenderedView(alert=alert_item(alert, incident=str(number or "")), incident=str(number))
    return render(writer, plan, run, "alert_without_row" if run.rows else "no_alert")


def _say_alert(scene: Scene, asked: str) -> None:
    if asked.startswith("attribute:"):
        attribute = attribute_of(asked.partition(":")[2])
        if related.say_values_of_alert(scene, attribute):
            return
        none = "That alert names no {}. Here is what it does hold:"
        scene.writer.say_compared([(scene.run, scene.at)], none, Fact(attribute.label))
    tell(scene, ["@alert_incident" if asked == "incident" else "@alert"])


def _events(writer: AnswerWriter, plan: Plan, run: ToolRun) -> RenderedView:
    """The raw events behind an alert, or why there are none to show and what evidence there is instead."""
    composed = render(writer, plan, run, "events")
    if not run.at("/summary/alert_id"):
        return composed
    told = {"alert_id": run.at("/summary/alert_id"), "time": run.at("/summary/start_time")}
    found = bool(run.rows) or not run.at("/summary/ran")
    outcome = Outcome.ANSWERED if found else Outcome.NO_DATA
    return replace(composed, outcome=outcome, alert=alert_item(told, incident=composed.incident or ""))


def _say_alert_fields(scene: Scene, _: str) -> None:
    """Fields that a question asks for by the alert's name: each distinct text once, with the alert that tells it."""
    writer, run = scene.writer, scene.run
    for field in scene.plan.aspects[1:] if "fields" in scene.plan.aspects else ():
        label, key = view_data()["alert_labels"][field], "remediation_steps" if field == "remediation" else field
        told = {plain(str(row[key])): place for place, row in reversed([*enumerate(run.rows)]) if row.get(key)}
        if not told:
            writer.say_none([run], f"{label}: none recorded in these alerts.")
        for place in sorted(told.values())[:MOST_TEXTS]:
            at = f"/rows/{place}/{key}"
            several = isinstance(run.at(at), list | tuple)
            places = [f"{at}/{each}" for each in range(len(elements(run, at)))] if several else [at]
            facts = [writer.words(run, each, limit=1500) for each in places]
            writer.say(f"{label} (alert {{}}): {{}}", writer.name(run, f"/rows/{place}/name"), facts)


# --- rankings, counts over time, the situation


def _say_ranked(scene: Scene, _: str) -> None:
    """The ranking without the names that were to be left out."""
    writer, run, plan = scene.writer, scene.run, scene.plan
    names = [aspect.removeprefix(WITHOUT) for aspect in plan.aspects if aspect.startswith(WITHOUT)]
    out = {each: [at for at, row in enumerate(run.rows) if _is_called(str(row.get("name")), each)] for each in names}
    places = [place for place in range(len(run.rows)) if not any(place in gone for gone in out.values())]
    for each, gone in out.items():
        if gone:
            writer.say("Left out: {}.", [writer.exact(run, f"/rows/{place}/name") for place in gone])
        else:
            writer.say_none([run], "No row that came is called {}, so nothing was left out for it.", Echo(each))
    if not places:
        writer.fixed("Nothing is left.")
        return
    if names and not plan.first:
        tell(scene.inside(f"/rows/{places[0]}"), ["First is {x name:200} with {n alerts} alerts."])
    tell(scene, [*(() if names else ("@shown",)), "@unreadable", "@asked_window", "@partial"])
    table_of(scene, "top", places)


def _is_called(name: str, asked: str) -> bool:
    """True if what the person wrote is `name`, its host name, its user part or the name behind its domain."""
    name, host = name.casefold(), name.casefold().partition(".")[0]
    return asked.casefold() in (
        name,
        name.partition("@")[0],
        name.rpartition("\\")[2],
        name if host.isdigit() else host,
    )


def _say_buckets(scene: Scene, _: str) -> None:
    rows = scene.run.rows
    places = [place for place in range(len(rows)) if len(rows) <= MOST_BUCKETS or rows[place].get("count")]
    if len(rows) > MOST_BUCKETS:
        scene.writer.fixed("Buckets without alerts, and the oldest ones, are left out of the table.")
    table_of(scene, "trend", places[-MOST_BUCKETS:])


def _say_change(scene: Scene, _: str) -> None:
    """Up or down in words; the figures stand in the lines before."""
    words = []
    for noun in ("incidents", "alerts"):
        now, before = scene.run.at(f"/summary/{noun}/total"), scene.run.at(f"/summary/previous/{noun}")
        if isinstance(now, int) and isinstance(before, int):
            words.append(f"{noun} {'rose' if now > before else 'fell' if now < before else 'stayed the same'}")
    if words:
        scene.writer.say_compared([(scene.run, "")], f"So {' and '.join(words)}.")


# --- queries, pages and files


def _templates(writer: AnswerWriter, plan: Plan, run: ToolRun) -> RenderedView:
    """The stored queries; example questions of the first of them are suggested."""
    questions = [row.get("questions") for row in run.rows]
    first = [plain(str(each[0])) for each in questions if isinstance(each, list | tuple) and each][:3]
    return replace(render(writer, plan, run, "templates"), suggestions=tuple(first))


def compose_freeform(writer: AnswerWriter, run: ToolRun) -> RenderedView:
    """The rows of a query that the person wrote, and what the guard or the workspace said of one that did not run."""
    if run.worked:
        return render(writer, Plan(view=View.KQL, calls=()), run, "freeform")
    outcome = failures.say_failures(writer, [run], some_worked=False)
    for problem in run.outcome.error.problems[1:] if isinstance(run.outcome, Failed) else ():
        place = "" if problem.line is None else f"Line {problem.line}, column {problem.column}: "
        near = f" Nearest: {', '.join(map(plain, problem.nearest))}." if problem.nearest else ""
        writer.fixed(f"{place}{plain(problem.message)}{near}")
    return RenderedView(outcome=outcome)


def _say_text(scene: Scene, _: str) -> None:
    """The beginning of a file line by line. The text is one value with one pointer: evidence on each line would repeat
    the whole of it for each."""
    lines = str(scene.run.at("/content")).splitlines()
    title = plain(scene.writer.exact(scene.run, "/file_path").text.strip("`"))
    scene.writer.table(title, ("text",), [[Fact(plain(line, limit=400))] for line in lines[:MOST_LINES]])
    if len(lines) > MOST_LINES or scene.run.at("/next_offset") is not None:
        scene.writer.fixed("Only its beginning is shown here.")


def _say_steering(scene: Scene, _: str) -> None:
    """A note below text of strangers that addresses a machine."""
    pages = [each for each in elements(scene.run, "/results")[:MOST_PAGES] if isinstance(each, Mapping)]
    texts = [str(page.get(key)) for page in pages for key in ("title", "snippet")]
    if any(map(reads_like_instruction, (*texts, str(scene.run.at("/content") or "")))):
        scene.writer.fixed(view_data()["sentence"]["steering"])


# --- a word or two alone


def _keywords(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> RenderedView:
    """Words found in the titles of incidents, in the names of alerts, or behind a technique; one plain sentence where
    nothing holds them, and the offer to look for an entity of that name."""
    scenes = [_keyword_scene(writer, plan, run) for run in runs]
    if not any(run.rows for run in runs):
        return _nowhere(scenes)
    listed: set[str] = set()
    for scene in scenes:
        told = {str(row.get("alert_id")) for row in scene.run.rows}
        if told and told <= listed:
            scene.parts = {**scene.parts, "listed": Fact("")}
        listed |= told
        tell(scene, ["@titles" if scene.run.call.tool_name == "query_incidents" else "@names"])
    tell(next(scene for scene in scenes if scene.run.rows), ["@window"])
    for run in runs:
        say_partial(writer, run)
    items = [item for scene in scenes for item in scene.items]
    only = items[0] if len(items) == 1 else None
    return RenderedView(
        items=tuple(items),
        incident=only.value if only is not None and only.kind == INCIDENT else None,
        alert=only if only is not None and only.kind == ALERT else None,
        suggestions=tuple(f"What is incident {item.value} about?" for item in items[:1] if item.kind == INCIDENT),
    )


def _keyword_scene(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Scene:
    given = run.call.arguments
    words = Echo(str(given.get("title_contains") or given.get("name_contains") or given.get("tactic", "")))
    where = Fact("as technique" if "tactic" in given else "in the name")
    return Scene(writer, run, plan, parts={"words": words, "where": where})


def _nowhere(scenes: Sequence[Scene]) -> RenderedView:
    writer, runs, words = scenes[0].writer, [scene.run for scene in scenes], scenes[0].parts["words"]
    assert isinstance(words, Echo)
    if all(run.at("/coverage/table_rows") == 0 for run in runs):
        none = "The tables of incidents and alerts hold no rows at all: nothing was collected or imported yet."
        writer.say_none(runs, none)
        tell(scenes[0], ["@fill"])
        return RenderedView(outcome=Outcome.NO_DATA, suggestions=("What data do you have?",))
    writer.say_none(runs, "No incident has {} in its title and no alert has it in its name.", words)
    tell(scenes[0], ["@window"])
    for run in runs:
        say_partial(writer, run)
    question = f'Show the alerts that name an entity called "{words.text}"'
    proposed = offer(question, "query_alerts", {"entity": words.text}, View.ALERTS)
    writer.fixed("It may be the name of an account, a host or a file: answer yes and I look for that.")
    say_numbered(writer, [proposed])
    return RenderedView(outcome=Outcome.NO_DATA, offers=(proposed,), suggestions=(question,))


_RANK = {severity: place for place, severity in enumerate(SEVERITIES)}


def _profile(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> RenderedView:
    """All that is recorded of one thing, in the order of `views.toml`: who it is, incidents, alerts, what the logs say,
    what is open. Each part that came is told, also that it holds nothing."""
    spec, name = view_data()["profile"], str(plan.frame.one("name"))
    if plan.frame.has("claim:judged"):
        writer.fixed(view_data()["sentence"]["not_judged"])
    items, noted, by_part = (
        [],
        set[str](),
        {str(run.call.arguments.get("template", run.call.tool_name)): run for run in runs},
    )
    for part in sorted(by_part, key=[*spec["parts"]].index):
        run = by_part[part]
        tell(Scene(writer, run, plan, parts={"asked": Echo(name)}), spec["parts"][part])
        if run.result is not None and not noted.issuperset(run.result.notes):
            noted.update(run.result.notes)
            say_partial(writer, run)
    for part, (like, title) in spec["tables"].items():
        scene = Scene(writer, by_part[part], plan) if part in by_part and by_part[part].rows else None
        if scene is not None and like:
            ranks = [_RANK.get(str(row.get("severity")), -1) for row in scene.run.rows]
            table_of(scene, like, sorted(range(len(ranks)), key=lambda at: -ranks[at]), title)
            items += scene.items
        elif scene is not None:
            query_rows.say_rows(scene, title)
    worst = next((item.value for item in items if item.kind == INCIDENT), "")
    found = any(run.rows for run in runs)
    told = spec["suggest"] if worst else ()
    return RenderedView(
        outcome=Outcome.ANSWERED if found else Outcome.NO_DATA,
        items=tuple(items),
        entity=entity_item((plan.frame.name_kinds(name) or ("",))[0], plan.frame.whole.get(name, name)),
        suggestions=tuple(each.format(first=worst) for each in told),
    )


def _say_activity(scene: Scene, _: str) -> None:
    """The kinds of activity in the logs, each with how often, how often it failed, and from where."""
    facts = []
    for place, row in enumerate(scene.run.rows):
        at = f"/rows/{place}"
        told: list[Part] = [scene.writer.number(scene.run, f"{at}/{name}") for name in ("Activity", "Events")]
        failed = [scene.writer.number(scene.run, f"{at}/Failed")] if row.get("Failed") else []
        places = (
            [[scene.writer.number(scene.run, each) for each in scene.pointers(f"{at}/Places")]]
            if row.get("Places")
            else []
        )
        words = "{} {}" + " from {}" * len(places) + " ({} failed)" * len(failed)
        facts.append(phrase(words, *told, *places, *failed))
    scene.writer.say("In the logs: {}.", facts)


_TOGETHER: Mapping[View, Callable[[AnswerWriter, Plan, Sequence[ToolRun]], RenderedView]] = {
    View.ATTRIBUTE: related.compose,
    View.PROPERTY: related.compose_property,
    View.PROFILE: _profile,
    View.KEYWORD: _keywords,
    View.COMPARISON: lambda writer, plan, runs: comparing.compose(writer, plan, runs, incident_view),
    View.COMPUTED: computed.compose,
}
"""Views that tell the results of all calls as one answer."""
BLOCKS.update(
    {
        "identity": _say_identity,
        "asked_fields": _say_fields,
        "who_and_where": _say_who_and_where,
        "artefacts": _say_artefacts,
        "ids_table": _say_ids_table,
        "partial_of_fields": lambda scene, _: say_partial(
            scene.writer, scene.run, () if "whole" in scene.parts else scene.plan.aspects
        ),
        "stages": _say_stages,
        "shared_entities": _say_shared_entities,
        "alert_fields": _say_alert_fields,
        "ranked": _say_ranked,
        "activity": _say_activity,
        "buckets": _say_buckets,
        "change": _say_change,
        "alike": query_rows.say_alike,
        "found": query_rows.say_found,
        "rows": query_rows.say_rows,
        "text": _say_text,
        "steering": _say_steering,
    }
)


# --- Yes or No


_SAYS_WHICH = ("op:exists", "rel", "name", "title", "topic")
"""Types of words that ask whether there is one at all."""
_OPEN_ENDED = ("ask", "order", "limit", "not", "both", "all", "op:compare", "op:count", "or", "time_of")
"""Types of words that ask for more than yes or no."""
_JUDGED = "Whether that is so is no field of the rows, and I do not judge it; here is what the alerts hold."
_THOSE = "These are those of which it is true; ask for the others too."
_STATUSES = {
    "Open": ("New", "Active"),
    "New": ("New",),
    "Active": ("Active",),
    "InProgress": ("Active",),
    "Closed": ("Closed",),
}


def open_with_verdict(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> None:
    """Put Yes or No before the first line that tells data, where the question asks for one and the rows decide it; a
    claim that no field holds ("is it compromised?") is said not to be recorded. Nothing is inferred."""
    frame = plan.frame
    if not frame.polar or len(runs) != 1 or runs[0].result is None or not writer.lines:
        return
    run, place = runs[0], min(len(plan.opening), len(writer.lines) - 1)
    if plan.view is View.INCIDENT:
        verdict = _verdict(writer, frame, run) if len(run.rows) == 1 else None
        if verdict is not None:
            writer.lines.insert(place, verdict)
        return
    if plan.view is View.KQL and frame.has("meta:watchlist") and frame.has("name"):
        writer.lines[place] = writer.lines[place].opened_with("Yes. " if run.rows else "No. ")
    if plan.view not in (View.ALERTS, View.ALERT_COUNT, View.INCIDENTS, View.INCIDENT_COUNT):
        return
    if "entity" in run.call.arguments and frame.has("claim:judged"):
        writer.lines.insert(place, Line(_JUDGED))
        return
    if frame.has("all") and frame.has("status"):
        writer.lines.insert(place, Line(_THOSE))
        return
    if frame.has("topic") and not frame.has("kind:alert", "kind:incident"):
        return  # no alert does not mean that nobody signed in
    found = bool(run.rows or run.at("/coverage/rows_total"))
    sure = not frame.unread and not run.at("/coverage/partial") and (found or not frame.has("guess"))
    if sure and frame.has(*_SAYS_WHICH) and not frame.has(*_OPEN_ENDED):
        writer.lines[place] = writer.lines[place].opened_with("Yes. " if found else "No. ")


def _verdict(writer: AnswerWriter, frame: Frame, run: ToolRun) -> Line | None:
    """Whether the incident has the status, classification, severity and owner that the question says it has."""
    if frame.has(*_OPEN_ENDED[:1], "ever"):
        return None  # the row holds the present state only
    held: list[tuple[bool, Fact]] = []

    def hold(true: bool, name: str, fact: Fact) -> None:
        held.append((true, phrase("{} {}", Fact(name), fact)))

    wanted = _STATUSES.get(frame.one("status") or "")
    if wanted is not None:
        hold(run.at("/rows/0/status") in wanted, "status", writer.number(run, "/rows/0/status"))
    if frame.has("class"):
        recorded = run.at("/rows/0/classification")
        if frame.has("not") or len(frame.all("class")) > 1 or not recorded:
            return None
        held.clear()  # what is classified is closed
        hold(recorded == frame.one("class"), "classification", writer.name(run, "/rows/0/classification"))
    severity, least, ranked = str(run.at("/rows/0/severity")), frame.one("min"), [*SEVERITIES]
    if least or frame.has("severity"):
        reached = severity in ranked and least is not None and ranked.index(severity) >= ranked.index(least)
        true = reached if least else severity in frame.all("severity")
        hold(true, "severity", writer.number(run, "/rows/0/severity"))
    if frame.has("owner"):
        owner, said = str(run.at("/rows/0/owner") or ""), str(frame.one("owner"))
        true = not owner if said == "unassigned" else said.lower() in owner.lower()
        hold(true, "owner", writer.name(run, "/rows/0/owner"))
    yes = all(true for true, _ in held)
    return writer.line(f"{'Yes' if yes else 'No'}: {{}}.", [fact for _, fact in held]) if held else None
