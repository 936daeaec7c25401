"""Stand-in for OneFlow-Benchmark's package of GPT."""
