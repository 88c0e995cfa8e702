"""The terminal: `sentinel demo`, `ask`, `chat`, `up` and the commands that look after what they use.

Only argparse is imported to answer `--help`; each command imports what it needs when it runs. A command returns an exit
code and raises SentinelError for what a person can mend; `main` turns that into one sentence and the next step.
"""

from __future__ import annotations

import io
import sys
from argparse import ArgumentError
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the value is the exit code (see `sentinel --help`)."""
    from sentinel_rag.surfaces.cli._parser import build_parser

    _open_closed_streams()
    given = sys.argv[1:] if arguments is None else arguments
    command = next((word for word in given if not word.startswith("-")), "")
    parser = build_parser(command)
    options, unknown = parser.parse_known_args(given)
    if unknown:  # told with the usage of the command, not of the whole
        getattr(options, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UsageError

    try:
        code: int = options.run(options)
    except SentinelError as error:
        from sentinel_rag.surfaces.cli._errors import report

        command = getattr(options, "parser", parser).prog
        report(error, as_json=getattr(options, "as_json", False), command=command)
        code = 2 if isinstance(error, UsageError | ConfigurationError) else 1
    except ArgumentError as error:  # options that do not go together
        getattr(options, "parser", parser).error(str(error))
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        # The reader of our output left (`sentinel ... | head`): nothing more to say, and nothing to flush at exit.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
    except Exception as error:  # the last net: a person gets a sentence, a developer the file
        from sentinel_rag.surfaces.cli._errors import is_interruption, of_the_system, report, report_fault

        if is_interruption(error):
            print("Stopped.", file=sys.stderr)
            return 130
        known = of_the_system(error)
        if known is None:
            report_fault(error)
        else:
            report(known, as_json=False)
        code = 1
    return code


def _open_closed_streams() -> None:
    """A scheduler may start a command without standard streams; then nothing is read and what is said goes nowhere.
    What a stream's encoding lacks is written as an escape: no answer is lost to a terminal without UTF-8."""
    import os

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
