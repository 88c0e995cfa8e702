"""AgentDojo without a model: its suites behind a real gateway, played by an agent that is hijacked altogether.

`loading` imports the pinned package, `estate` is the MCP server that holds a suite's environment, `gateway_process`
the gateway in front of it, `driving` plays user tasks and attacks, `measuring` counts. The policies are files of
ours.
"""
