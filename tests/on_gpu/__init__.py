"""What only a machine with an NVIDIA GPU shows, and what such a machine showed once."""
