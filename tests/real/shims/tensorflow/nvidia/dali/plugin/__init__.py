"""Where DALI keeps its iterators."""
