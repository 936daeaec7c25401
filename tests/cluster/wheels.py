"""Stub wheels of OneFlow, made as pip wants them and equal wherever they are made."""

import base64
import hashlib
import io
import zipfile
from pathlib import Path

_HERE = Path(__file__).parent
_LONG_AGO = (2020, 8, 21, 0, 0, 0)


def made(project: str, version: str) -> tuple[str, bytes]:
    """The file name and the content of a wheel of that project, whose package is ``oneflow``."""
    stub = _HERE / "standin" / "oneflow_stub"
    files = {f"oneflow/{path.name}": path.read_bytes() for path in sorted(stub.glob("*.py"))}
    first = files["oneflow/__init__.py"].replace(b"@VERSION@", version.encode())
    nccl = (_HERE / "standin" / "torch_stub" / "nccl.py").read_bytes()
    info = f"{project}-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
    kind = "Wheel-Version: 1.0\nGenerator: testbed\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files |= {
        "oneflow/__init__.py": first,
        "oneflow/nccl.py": nccl,
        f"{info}/METADATA": about.encode(),
        f"{info}/WHEEL": kind.encode(),
    }
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content)
    return f"{project}-{version}-py3-none-any.whl", buffer.getvalue()


def _record(files: dict[str, bytes], itself: str) -> bytes:
    lines = [f"{name},sha256={_hash(content)},{len(content)}" for name, content in files.items()]
    return "\n".join([*lines, f"{itself},,", ""]).encode()


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
