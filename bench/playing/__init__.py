"""A person, or another model, plays the model behind the product: see README.md."""
