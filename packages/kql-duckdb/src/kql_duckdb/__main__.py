"""`python -m kql_duckdb`."""

from kql_duckdb.cli import main

raise SystemExit(main())
