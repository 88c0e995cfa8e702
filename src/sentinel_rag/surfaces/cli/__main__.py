"""`python -m sentinel_rag.surfaces.cli` is `sentinel`."""

import sys

from sentinel_rag.surfaces.cli import main

sys.exit(main())
