"""The shipped images with values of the virtual cluster: what a user behind a firewall would do.

The Dockerfiles and scripts are those that ship; only image.yaml says where code and OFED lie.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "images"
NGC = """\
name: ngc-pytorch-20.03
base: nvcr.io/nvidia/pytorch:20.03-py3
python: python
code: /workspace/rn50
infiniband: mlnx_ofed
ofed: {{url: "{ofed_url}", version: {ofed_version}}}
source: {{url: "{code_url}", commit: {code_commit}, path: {code_path}}}
"""


def write(folder: Path, downloads: Mapping[str, str]) -> None:
    """Write ``images/`` below the folder, from which the command line is then run."""
    for name in ("ngc-pytorch-20.03", "reference-rn50"):
        shutil.copytree(SHIPPED / name, folder / "images" / name)
    (folder / "images/ngc-pytorch-20.03/image.yaml").write_text(NGC.format(**downloads))
