"""The program's commands, one module each; a command alone joins rules and edges."""
