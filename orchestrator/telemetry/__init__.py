"""Reads and judges what a task's observer (``runtimes/observe.sh``) wrote of its node. Pure."""
