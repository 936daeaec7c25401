"""The data sets: a module per set."""
