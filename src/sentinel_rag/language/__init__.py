"""What words say, in every language that the product knows: the lexicon (data, one file a language) and the literals of
a text. Pure: read by the planner and by the check of an answer; knows no row and no tool."""
