"""The shipped images with values of the virtual cluster: what a user behind a firewall would do.

The Dockerfiles and scripts are those that ship; only image.yaml says where code and OFED lie.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "images"
_OFED = """\
infiniband: mlnx_ofed
ofed: {{url: "{ofed_url}", version: {ofed_version}}}
"""
_OLD = """\
base: nvcr.io/nvidia/pytorch:20.03-py3
python: python
code: /workspace/OneFlow-Benchmark
left_open: [wheels]
source: {{url: "{oneflow_url}", commit: {oneflow_commit}}}
"""
IMAGES = {
    "ngc-pytorch-20.03": _OFED
    + """\
base: nvcr.io/nvidia/pytorch:20.03-py3
python: python
code: /workspace/rn50
source: {{url: "{code_url}", commit: {code_commit}, path: {code_path}}}
""",
    "ngc-tensorflow-20.03": _OFED
    + """\
base: nvcr.io/nvidia/tensorflow:20.03-tf1-py3
python: python3
code: /workspace/rn50v15_tf
source: {{url: "{code_url}", commit: {code_commit}, path: TensorFlow/Classification/ConvNets}}
""",
    "oneflow-0.1.9": _OFED + _OLD + 'wheels: ["{wheel_019}"]\nparams: {{release: "0.1.9"}}\n',
    "oneflow-0.2.0": _OFED + _OLD + 'wheels: ["{wheel_020}"]\nparams: {{release: "0.2.0"}}\n',
    "oneflow-gpt-0.3.5": """\
base: docker.io/library/oneflow-manylinux2014-cuda11.2:0.1
archive: "{archive_url}"
python: python3
code: /workspace/oneflow_gpt
wheels: ["{wheel_gpt}"]
source: {{url: "{oneflow_url}", commit: {oneflow_commit}, path: LanguageModeling/GPT}}
""",
}


def write(folder: Path, downloads: Mapping[str, str]) -> None:
    """Write ``images/`` below the folder, from which the command line is then run."""
    shutil.copytree(SHIPPED / "reference-rn50", folder / "images" / "reference-rn50")
    for name, text in IMAGES.items():
        shutil.copytree(SHIPPED / name, folder / "images" / name)
        content = f"name: {name}\n{text.format(**downloads)}"
        (folder / "images" / name / "image.yaml").write_text(content)
