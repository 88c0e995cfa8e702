"""Library: clients of Azure Log Analytics, query templates, entities and typed results."""
