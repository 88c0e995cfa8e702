"""Functions and operators of KQL as builders of typed SQL; `registry` finds them by name."""
