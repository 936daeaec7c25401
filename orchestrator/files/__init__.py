"""Files at the edge: YAML read with positions, what is shipped, downloads kept by their sha256."""
