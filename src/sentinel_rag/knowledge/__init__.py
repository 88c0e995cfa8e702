"""Knowledge: past incidents and playbooks that are found, cited and kept current. A library beside `sentinel`.

`documents` reads, `chunking` cuts along sections, `embedding` makes vectors, `stores` keep, `search` finds. A tool
server above serves it over MCP; what it needs of Sentinel arrives as values.
"""
