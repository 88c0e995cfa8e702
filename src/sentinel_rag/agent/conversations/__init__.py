"""Conversations that outlive the process: a store of turns and memories, and the chat that keeps its turns there.

Assembly wires it; surfaces see `contracts.ports.Chat`. It knows no model and no grammar: what an analyst remembers is
the analyst's own, and is handed back to it as it was.
"""
