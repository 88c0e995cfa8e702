"""Which of an alert's processes and files is the one that a story is about.

An alert of an endpoint names a process with those that started it, and every file behind them. The story is about what
was run at the end of such a chain, and about files that were not installed with the system, unless the question
says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.offline.alert_walk.pool import Alert, base_name, names_of, says
from sentinel_rag.agent.offline.alert_walk.values import Value

_OF_THE_SYSTEM = re.compile(r"(?:^|\\)windows\\|\\program files(?: \(x86\))?\\|^/(?:usr/)?s?bin/", re.IGNORECASE)
_SYSTEM_NAMES = frozenset({"powershell.exe", "cmd.exe", "ntoskrnl.exe", "conhost.exe", "svchost.exe", "services.exe"})
_ENDINGS = {
    r"scripts?": ("ps1", "psm1", "bat", "cmd", "vbs", "js", "py", "sh"),
    r"executables?|binar(?:y|ies)": ("exe", "com", "scr", "elf"),
    r"dll|librar(?:y|ies)": ("dll",),
    r"drivers?": ("sys",),
    r"archives?|zip": ("zip", "7z", "rar", "gz"),
    r"tools?": ("exe", "com", "scr", "elf"),
    r"documents?": ("doc", "docx", "docm", "xls", "xlsx", "xlsm", "pdf", "rtf"),
}
_STARTER = re.compile(
    r"\b(?:process|program|file|executable|parent)\s+(?:that|which|who)\s+(?:\w+\s+)?(?:launched|started|spawned|executed|"
    r"created|ran|run|called|initiated)\b|\bparent\b|\bprocess\s+(?:executed|launched|started|spawned)\s+(?:a|the)\b|"
    r"\b(?:launching|executing|starting|spawning)\s+(?:the|a)\b",
    re.IGNORECASE,
)


def asks_for_starter(question: str) -> bool:
    """True if the question is about the process that started another."""
    return _STARTER.search(question) is not None


def asks_for_process(question: str) -> bool:
    """True if the file asked for is that of a process."""
    return re.search(r"\bprocess\b", re.split(r"(?<=[.?!])\s", question)[-1], re.IGNORECASE) is not None


def endings_asked(question: str) -> tuple[str, ...]:
    """File name endings of the sort of file that the question asks for; empty if it says none."""
    for words, endings in _ENDINGS.items():
        if re.search(rf"\b(?:{words})\b", question, re.IGNORECASE):
            return endings
    return ()


def with_ending(values: Sequence[Value], endings: tuple[str, ...]) -> list[Value]:
    """Files of that sort."""
    return [value for value in values if value.text.lower().rpartition(".")[2] in endings]


def last_of_chain(values: Sequence[Value]) -> list[Value]:
    """Processes that started no other process of the same alert."""
    started = {
        (value.alert.alert_id, str(parent))
        for value in values
        for _, entity in value.alert.entities
        if (parent := entity.get("parent_process_id"))
    }
    return [value for value in values if (value.alert.alert_id, str(value.entity.get("process_id"))) not in started]


def not_of_the_system(values: Sequence[Value]) -> list[Value]:
    """Files and processes whose image did not come with the operating system."""

    def own(value: Value) -> bool:
        path = str(value.entity.get("image_file") or value.entity.get("name") or "")
        return _OF_THE_SYSTEM.search(path) is None and value.text.lower() not in _SYSTEM_NAMES

    return [value for value in values if own(value)]


def named_in(values: Sequence[Value], question: str) -> list[Value]:
    """Values of processes whose id or program the question names."""
    said = {match[1] for match in _PROCESS_ID.finditer(question)}
    by_id = [value for value in values if str(value.entity.get("process_id")) in said]
    if by_id:
        return by_id
    return [
        value
        for value in values
        if any(says(question, name) for name in names_of(value.entity) if "." in name or " " in name)
    ]


def names_a_program(question: str) -> bool:
    """True if the question names a program by its file."""
    return _PROGRAM.search(question) is not None


_PROGRAM = re.compile(r"[\w-]\.(?:exe|com|scr|elf|ps1|dll)\b", re.IGNORECASE)
_PROCESS_ID = re.compile(r"\b(?:process\s+with\s+id|process\s+id|pid)\W{0,3}(\d{1,7})\b", re.IGNORECASE)


def files_of_commands(alerts: Sequence[Alert], endings: tuple[str, ...]) -> list[Value]:
    """Files of that sort that the alerts' command lines name, in the form of values."""
    pattern = re.compile(rf"[^\s\"'=:;,|<>(){{}}]+\.(?:{'|'.join(endings)})\b", re.IGNORECASE)
    found = []
    for alert in alerts:
        for at, entity in alert.entities:
            for match in pattern.finditer(str(entity.get("command_line") or "")):
                name = base_name(match[0])
                found.append(Value(name.casefold(), name, alert, f"{at}/command_line", entity, at))
    return found
