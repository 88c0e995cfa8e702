"""The render edge of every surface: text of others made safe to look at, in a terminal, on a page and in a table file.

Nothing else in the product decides what a hostile text may do. Each form has one module; what all of them show instead
of a character that a reader would not see stands in `visible`. Each is imported by itself, for
a command that shows a line needs no page.
"""
