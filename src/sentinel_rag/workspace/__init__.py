"""The embedded workspace: an analyst's tables on DuckDB, real KQL over them, imports, a sample estate, Azure's wire.

Others use `Workspace` of `workspace.workspace`, `create_app` of `workspace.server`, the values they take and give
(`EstateOptions`, `EstateGuide`, `ImportReport`, `KqlAnswer`, `TableInfo`, `TimeRange`) and the errors of
`workspace.queries`. Importing this package imports no database; the modules named do.
"""
