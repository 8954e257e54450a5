"""What travels between the parts: ids, subjects, cards, goals, messages and their encoding. No I/O."""
