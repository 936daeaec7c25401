"""What the program can do, one module a command; they alone see both rules and edges."""
