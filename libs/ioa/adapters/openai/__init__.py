"""Language models behind an endpoint that speaks as OpenAI's does."""
