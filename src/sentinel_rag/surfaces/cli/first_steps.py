"""`sentinel` alone: what to type first, by what this home holds already."""

from __future__ import annotations

from sentinel_rag.app.home_folders import workspace_folder
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._zones import DEFAULT_WORKSPACE, SAMPLE_WORKSPACE

FROM_NOTHING = (
    ("sentinel demo", "see in a minute what it does: questions, and a hijacked agent that gets nowhere"),
    ("sentinel workspace generate", "a sample estate to ask about, on this machine"),
    ("sentinel workspace import FILE", "or your own exports: CSV, JSON, Parquet"),
    ("sentinel doctor", "or Azure: what is set, what is missing (docs/azure.md)"),
)
WITH_ROWS = (
    ("sentinel chat", "ask, in a conversation; /help lists what it takes"),
    ('sentinel ask "what happened in the last 7 days?"', "one question"),
    ("sentinel status", "which parts run, and where"),
    ("sentinel doctor", "check everything that it needs"),
)


def run() -> int:
    """Print the first steps; 0."""
    try:
        settings = load_settings()
    except ConfigurationError:
        print("Some settings are wrong, so nothing starts yet. Each is named, with its remedy, by:\n")
        print("  sentinel doctor")
        return 0
    ready, running = _holds_rows(settings), RunFolder(settings.home).read() is not None
    print("Sentinel RAG answers questions about Microsoft Sentinel in plain words.")
    if running:
        print("It runs now. Next:\n")
    else:
        print(
            "Ready to be asked. Next:\n" if ready else "There is nothing to ask about yet. Start with one of these:\n"
        )
    steps = WITH_ROWS if ready else FROM_NOTHING
    width = max(len(typed) for typed, _ in steps)
    for typed, meaning in steps:
        print(f"  {typed:{width}}  {meaning}")
    print("\nsentinel --help lists all commands.")
    return 0


def _holds_rows(settings: Settings) -> bool:
    """Whether there is a workspace to ask: elsewhere, on Azure, or a folder in this home."""
    if settings.gateway_url is not None or any(not each.embedded for each in settings.workspaces):
        return True
    names = {each.name for each in settings.workspaces} or {settings.workspace or DEFAULT_WORKSPACE, SAMPLE_WORKSPACE}
    return any(workspace_folder(settings.home, name).exists() for name in names)
