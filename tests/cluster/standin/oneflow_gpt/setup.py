"""How pip installs the stand-in of GPT: the benchmark's own setup.py names as much."""

import setuptools  # type: ignore[import-untyped]  # it brings no types

setuptools.setup(
    name="oneflow_gpt",
    version="0.0.1",
    packages=["oneflow_gpt"],
    package_data={"oneflow_gpt": ["*.csv"]},
)
