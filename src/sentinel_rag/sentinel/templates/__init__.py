"""The prepared queries, one YAML file each: what they take, and how they are read, listed and run."""
