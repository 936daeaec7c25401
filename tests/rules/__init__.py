"""Rules: text in, value out."""
