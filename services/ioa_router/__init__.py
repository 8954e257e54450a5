"""Router: whether a message is legal, in which order, to whom."""
