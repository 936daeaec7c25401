"""What the program costs, beside its peers: scripts that print, and are no tests."""
