"""Search engines that hold the cards: Qdrant's engine in a process of our own, or a server."""
