"""People's own collections of KQL: which queries a file holds, where they stand in it, and what is wrong with them.

`reading.read_rule_file` finds the queries of one file, `checking.RuleChecker` judges one. Nothing here is about
freeform KQL: a rule that an analyst wrote for the portal may use more than a model may.
"""
