"""Empty: images are never read."""
