"""The router: the authority of each group. It decides whether a message is legal, in which order, and to whom it goes."""
