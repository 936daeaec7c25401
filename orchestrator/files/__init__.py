"""Reading files: YAML with line and column, shipped files, downloads stored by sha256."""
