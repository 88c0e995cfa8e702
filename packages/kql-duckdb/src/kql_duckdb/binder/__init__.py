"""Trees to relations: names found, types known, every operator and function decided."""
