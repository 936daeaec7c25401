"""What commands start from: the user's YAML files, site files, host lists, answers of nodes."""
