"""The command line `ioa`."""
