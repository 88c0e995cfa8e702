"""Benchmarks, run by `make bench`: each module measures one claim and writes `bench/results/`."""
