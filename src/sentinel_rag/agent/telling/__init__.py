"""What the agent tells of its questions while it answers them: spans and counts, put around the analyst and the models.

Never a word of a question, an argument, a result or an answer: names, ids, sizes, statuses and codes only. Its modules
are imported one by one, so that an agent that tells nothing loads nothing of it but the spans of its calls.
"""
