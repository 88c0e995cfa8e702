"""Incidents of the embedded workspace as Microsoft Sentinel's REST API sees them: one resource each, made of the
newest of its rows in SecurityIncident. Reading and writing only; how it travels is the business of `serving`."""
