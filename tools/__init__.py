"""Writers of the generated pages of the documentation. They are no part of what is installed."""
