"""Stands in for NVIDIA's apex, of which nothing is left to do without a GPU."""
