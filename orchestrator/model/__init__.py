"""Nouns: what users write is a ``Noun`` (pydantic), what the program makes a frozen dataclass."""
