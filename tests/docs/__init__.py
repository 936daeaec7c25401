"""The README and docs/ are true: their commands run, their codes, fields and links exist."""
