"""How the tasks of a gang are brought to life together."""
