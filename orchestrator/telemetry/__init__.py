"""Reads and judges what the observer of a task wrote about its node. Pure.

``read`` parses the observer's files; ``judge`` sums them up over the window and decides on marks.
``runtimes/observe.sh`` defines what is looked at, and how often.
"""
