"""Zone A: plans tool calls and writes grounded answers. It can execute nothing; see `contracts.ports.ToolGateway`."""
