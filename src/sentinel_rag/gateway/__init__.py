"""Zone B: authenticates, labels, decides, records and forwards each tool call; it executes nothing.

`app.create_app` is the HTTP face; it takes ready parts: a policy (`policy.load_policy`), the state (`store.open_state`)
and one `Upstream` for each MCP server that the policy names. Whoever wants one of those alone does not load the face.
"""
