"""dlperf-orch: containerized orchestration of distributed deep-learning benchmarks."""

__version__ = "0.1.0"
