"""The agent's HTTP face: POST /chat."""
