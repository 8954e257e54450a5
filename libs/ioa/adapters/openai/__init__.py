"""Client of OpenAI-compatible language models."""
