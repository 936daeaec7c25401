"""One module a format: the table of what its lines look like, and what only it knows."""
