"""KQL over the store: translation with an allow-list, and bounded execution.

Others use `KqlEngine` and the errors; everything else is in the modules of this folder.
"""
