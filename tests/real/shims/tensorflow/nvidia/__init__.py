"""Where NVIDIA keeps DALI."""
