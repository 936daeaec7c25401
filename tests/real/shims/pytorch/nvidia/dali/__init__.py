"""Stands in for DALI: counts the files of a data set, and makes images up."""
