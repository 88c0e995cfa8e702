"""Microsoft's KQL parser: an npm package in a node process, behind the driver in `microsoft_parser/`.

Where the package and node are found, `parser_installation` knows; how it is asked, `parser_client`.
"""

from __future__ import annotations

from pathlib import Path

from sentinel_rag.sentinel.kql_guard.parser_client import ParserClient
from sentinel_rag.sentinel.kql_guard.parser_process import ParserProcess

DRIVER = Path(__file__).parent / "microsoft_parser" / "driver.cjs"
_MEGABYTES_OF_HEAP = 768


class OfficialParser(ParserClient):
    """The parser in one node process. `folder` holds the package's files; `node_version` decides how it is confined."""

    def __init__(
        self,
        folder: Path,
        node: Path,
        *,
        node_version: tuple[int, ...] = (18,),
        timeout_s: float = 10.0,
        start_timeout_s: float = 30.0,
    ) -> None:
        command = _command(folder.resolve(), node, node_version)
        process = ParserProcess(command, start_timeout_s=start_timeout_s, advice="Run: sentinel kql install")
        super().__init__(process, timeout_s=timeout_s)


def _command(folder: Path, node: Path, version: tuple[int, ...]) -> tuple[str, ...]:
    # Node's permission model left its trial with 22.13; an older node runs the parser unconfined.
    confined: tuple[str, ...] = ()
    if version >= (22, 13):
        confined = ("--permission", f"--allow-fs-read={folder}/*", f"--allow-fs-read={DRIVER.resolve()}")
    return (str(node), f"--max-old-space-size={_MEGABYTES_OF_HEAP}", *confined, str(DRIVER.resolve()), str(folder))
