"""Import of exports: CSV and its relatives, JSON, JSON lines and Parquet into typed tables, with a truthful report.

Others use `Importer` of `importer` and the dataclasses of `reports`; everything else is in the modules of this folder.
"""
