"""The state folder: every file of it is written and read here, under its lock."""
