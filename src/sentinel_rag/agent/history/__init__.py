"""What a model is told of a conversation: its turns, bounded in tokens.

The loop above keeps one `History` for each conversation and sends what `fitted` gives. It is memory of one process;
the conversation store keeps what its `last_turn` gives, and hands it back to `recall`.
"""
