"""The text of KQL and its tree: `lexer`, `parser`, `ast` and `printer`. Nothing here knows a database."""
