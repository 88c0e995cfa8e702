"""What people and scripts touch."""
