#!/bin/sh
# Run the whole job on a machine with an NVIDIA GPU: inventory, checks, a sweep of the reference
# program in bf16, AMP and fp32 with telemetry, report, verify. Everything that it prints and what
# the driver's tools print goes into FOLDER, and FOLDER into one archive beside it.
#
# usage: sh tests/on_gpu/run.sh [FOLDER]
#
#   PYTHON    interpreter that has PyTorch and the packages of dlperf-orch; default: python3
#   PLAYBOOK  default: tests/on_gpu/playbook.yaml
set -u
folder=${1:-gpu-run}
python=${PYTHON:-python3}
playbook=${PLAYBOOK:-tests/on_gpu/playbook.yaml}

if ! nvidia-smi -L 2>/dev/null | grep -q ^GPU; then
    echo "nvidia-smi names no GPU here; nothing was run. Needed: a machine with an NVIDIA GPU and its driver."
    exit 0
fi
mkdir -p "$folder/raw" || exit
failed=

# Keep standard output, standard error and exit status of a command in files that begin with NAME.
keep() {
    name=$1
    shift
    timeout 60 "$@" >"$folder/raw/$name.txt" 2>"$folder/raw/$name.err" </dev/null
    echo "$? $*" >"$folder/raw/$name.status"
    [ -s "$folder/raw/$name.err" ] || rm "$folder/raw/$name.err"
}

# Run dlperf-orch, show what it prints, keep it, and remember a status that is not 0.
orch() {
    name=$1
    shift
    echo "dlperf-orch $*"
    "$python" -m orchestrator "$@" --state "$folder/state" >"$folder/$name.out" 2>"$folder/$name.err"
    status=$?
    echo "$status dlperf-orch $*" >>"$folder/status.txt"
    tail -n 12 "$folder/$name.out" "$folder/$name.err"
    [ "$status" -eq 0 ] || failed="$failed $name=$status"
}

fields=timestamp,index,uuid,pstate,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used
keep list nvidia-smi -L
keep smi nvidia-smi
keep q nvidia-smi -q
keep q-x nvidia-smi -q -x
keep topo-m nvidia-smi topo -m
keep topo-p2p nvidia-smi topo -p2p r
keep nvlink nvidia-smi nvlink --status
keep mig nvidia-smi mig -lgip
keep help-query-gpu nvidia-smi --help-query-gpu
keep query-gpu nvidia-smi --query-gpu=$fields --format=csv,nounits
keep apps nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv
keep dmon nvidia-smi dmon -c 2
keep driver cat /proc/driver/nvidia/version
keep lspci lspci -nn
keep uname uname -a
keep cpu lscpu
keep torch "$python" -c 'import torch; print(torch.__version__, torch.version.cuda, torch.cuda.get_device_properties(0))'

orch init init localhost --out "$folder/here.yaml" --force
orch check check "$folder/here.yaml"
orch provision provision "$folder/here.yaml" --json
orch sweep sweep "$playbook" --inventory "$folder/here.yaml" --new
orch collect collect --json
orch verify verify --json
orch archive archive --out "$folder/sweep.tar.zst"
keep apps-after nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv
keep smi-after nvidia-smi

tar -czf "$folder.tar.gz" -C "$(dirname "$folder")" "$(basename "$folder")"
echo "everything: $folder.tar.gz"
[ -z "$failed" ] || { echo "failed:$failed" && exit 1; }
