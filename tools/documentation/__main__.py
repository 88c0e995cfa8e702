"""`python -m tools.documentation WHAT`: writes `docs/reference/` from the code, the answers of `docs/cookbook/` or the
pictures of `docs/pictures/` from a running product, or the site from all pages. `reference --check` writes nothing and
names the pages that are not as the code says."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.documentation", description=__doc__)
    made = parser.add_subparsers(dest="what", required=True)
    reference = made.add_parser("reference", help="write docs/reference/ and config/sentinel_config.schema.json")
    reference.add_argument("--check", action="store_true", help="write nothing; exit code 1 if something would change")
    cookbook = made.add_parser("cookbook", help="ask the questions of docs/cookbook/ again and write the answers")
    cookbook.add_argument("page", nargs="*", help="names of pages; all if left out")
    made.add_parser("pictures", help="take the pictures of docs/pictures/ anew, of a running product")
    made.add_parser("recording", help="record `sentinel demo` in a terminal anew, as docs/pictures/demo.svg")
    site = made.add_parser("site", help="build the site; every link is checked")
    site.add_argument("--builder", type=Path, required=True, metavar="FOLDER", help="where zensical is installed")
    site.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where the site goes")
    options = parser.parse_args()
    if options.what == "reference":
        return _reference(check=options.check)
    if options.what == "cookbook":
        from tools.documentation.cookbook import write_answers

        return write_answers(REPOSITORY, options.page)
    if options.what == "pictures":
        from tools.documentation.pictures import take

        return take(REPOSITORY)
    if options.what == "recording":
        from tools.documentation.recording import record

        return record(REPOSITORY)
    from tools.documentation.site import build

    return build(REPOSITORY, options.builder.resolve(), options.output)


def _reference(*, check: bool) -> int:
    from tools.documentation.reference import outdated

    changed = outdated(REPOSITORY)
    for path, text in changed.items():
        print(f"{path.relative_to(REPOSITORY)} {'is not what the code says' if check else 'is written'}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if not changed:
        print("The reference is what the code says.")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
