"""A suite of attacks on agents for a security operations centre, in AgentDojo's form: tasks, goals, and an estate in
which an attacker writes. docs/soc-suite.md tells how to run it on an agent of your own.

    python -m sentinel_rag_testing.soc --agent my_package:answer

`suite` reads the data, `product` runs everything, `hijacked` and `agents` are what can be measured, `judging` decides
by state, `measuring` and `agent_runs` do many runs. Nothing is imported here: one of the product's own processes is
started from this package.
"""
