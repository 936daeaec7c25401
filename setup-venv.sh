#!/bin/sh
# Prepare .venv: the packages of requirements.lock, PyTorch, and this checkout. `make` runs this script
# before each target that needs them; it does nothing when .venv is complete. PYTHON in the environment
# names the interpreter. Without PYTHON, a .venv that works is kept, and a new one is made with python3.
set -eu
cd "$(dirname "$0")"
here=$(pwd -P)
python=${PYTHON:-python3}
bin=.venv/bin

fail() {
    printf 'make: %s\n' "$@" >&2
    exit 1
}

check_python() {
    seen=$("$python" -c 'import sys; print("Python %d.%d.%d" % sys.version_info[:3])' 2>&1 | head -n 1)
    case $seen in
    "Python 3.1"[1-9].* | "Python 3."[2-9][0-9].*) ;;
    *)
        # "setup-venv.sh: 18: python3.14: not found" names it already.
        fail "$python: ${seen##*"$python: "}; needed Python 3.11 or later." \
            "Name one, as in: make demo PYTHON=/path/to/python3.12 (Debian 12 and Ubuntu 24.04 have one as python3)."
        ;;
    esac
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    version=${seen#Python }
    fail "$python: $seen without its modules venv and ensurepip, which make .venv." \
        "Install them; on Debian and Ubuntu: apt-get install python${version%.*}-venv"
}

# A venv prints the same as the interpreter that it was made with.
describe() {
    "$1" -c 'import sys; print(sys.base_prefix, *sys.version_info)' 2>&1 || true
}

# Print why .venv cannot be used, or nothing. Programs in .venv/bin name its folder in their first lines.
find_fault() {
    if [ ! -e .venv/.ready ]; then
        echo "it is incomplete"
    elif ! head -n 2 $bin/dlperf-orch | grep -qF -e "#!$here/$bin/" -e "\"$here/$bin/"; then
        echo "it was made in another folder"
    elif ! $bin/python -c '' 2>/dev/null; then
        echo "its Python does not run"
    elif [ -n "${PYTHON:-}" ] && [ "$(describe "$python")" != "$(describe $bin/python)" ]; then
        echo "it was made with another Python than $PYTHON"
    fi
}

# uv knows which build suits this machine's GPU and driver, and takes the CPU build where there is none.
# It needs PyTorch's own index. Where that cannot be reached, one try of 5 seconds at most shows it.
install_torch() {
    torch=$(sed -n 's/^demo = \["\(.*\)"\]$/\1/p' pyproject.toml)
    set -- $bin/uv pip install --python $bin/python --torch-backend "${UV_TORCH_BACKEND:-auto}" "$torch"
    "$@" --offline --quiet 2>/dev/null && return # it is installed, or in uv's cache
    # Sizes of torch 2.13.0: the sum of what pip prints of its downloads, and `du -sm .venv`.
    echo "Now PyTorch: where there is no GPU its CPU build, 0.2 GB to download, else a CUDA build, 2.7 GB."
    UV_HTTP_RETRIES=0 UV_HTTP_CONNECT_TIMEOUT=5 "$@" --quiet --dry-run && "$@" && return
    echo "uv got no PyTorch, for the reason above; pip takes the build that its own index has. The public"
    echo "index has the CUDA build: 2.7 GB to download, 4.9 GB in .venv. Unpacking it takes a minute or two."
    $bin/python -m pip install "$torch"
}

[ -z "${PYTHON:-}" ] || check_python
fault=$(find_fault)
if [ -n "$fault" ]; then
    check_python
    [ ! -e .venv ] || echo ".venv is made anew: $fault."
    "$python" -m venv --clear .venv
elif ! [ pyproject.toml -nt .venv/.ready ] && ! [ requirements.lock -nt .venv/.ready ]; then
    exit
fi
rm -f .venv/.ready # until all of it is installed
$bin/python -m pip install --require-hashes -r requirements.lock
install_torch
$bin/python -m pip install --quiet --no-build-isolation -e '.[demo]'
touch .venv/.ready
echo ".venv is complete: $(du -sh .venv | cut -f 1)"
