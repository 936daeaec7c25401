"""Nouns: frozen, validated, arithmetic only."""
