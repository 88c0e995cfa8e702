"""The SQLite file of stores on this machine: documents, chunks, their words, and vectors kept by their text's hash.

A store adds what it searches vectors by (`VectorIndex`). That is made of these rows, so the file is all of the truth.
"""
