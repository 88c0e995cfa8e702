"""Programs of the repository: the made parts of the documentation, and the budget of the house."""
