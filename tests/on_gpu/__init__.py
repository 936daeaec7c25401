"""Run the whole job on a machine with an NVIDIA GPU; test what such a machine recorded."""
