"""What the observer of a task wrote about its node, read and judged. Pure."""
