"""A zone's process: `python -m sentinel_rag.app ZONE DESCRIPTOR`; started by the supervisor, never by hand."""

import sys

from sentinel_rag.app.serving import begin_zone, fail_to_start, serve
from sentinel_rag.app.zones import BUILDERS
from sentinel_rag.contracts.errors import SentinelError


def main() -> None:
    zone, descriptor = sys.argv[1], int(sys.argv[2])
    configuration = begin_zone(zone)
    try:
        serve(BUILDERS[zone](configuration), descriptor, tls=configuration.get("tls"))
    except SentinelError as error:
        fail_to_start(error)


main()
