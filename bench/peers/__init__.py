"""Other gateways and proxies for MCP, measured beside the gateway by `bench_gateway_peers`.

Each is installed from the package index into an environment of its own, with the versions of `pins/`, and configured
as its documentation says, with authentication and audit switched on where it has them.
"""
