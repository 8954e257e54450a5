"""A whole control plane in memory, made of the real services, and agents whose answers are known. They come with the package."""
