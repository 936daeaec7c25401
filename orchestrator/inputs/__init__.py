"""Inputs of commands: the user's YAML files, site files, host lists, answers of nodes."""
