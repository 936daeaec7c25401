"""Tests of container images: their recipes, and the scripts that ship."""
