"""Nouns: frozen, validated, arithmetic only.

What users write is a ``Noun`` (pydantic), what the program makes a frozen dataclass. To give a file
a new field, begin here; rules over nouns live in the rooms above.
"""
