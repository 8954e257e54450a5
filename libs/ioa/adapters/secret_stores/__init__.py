"""Stores of private files: a folder, or Secrets of Kubernetes."""
