"""The program's commands, one module each, with their options; they alone join rules and edges."""
