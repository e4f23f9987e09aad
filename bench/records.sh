#!/usr/bin/env bash
# Makes the records of bench/results about GPUs again, on the GPUs of this machine.
#
#   bench/records.sh OUT [PES] [STEP]...
#
# OUT: folder of the results, made if it is not there. PES: GPUs in use (all). Steps, in this order:
#   suite      suite paper18, all contenders that are here: OUT/cg-<PES>x.jsonl
#   stencils   grids of the thesis, discrete kernels beside: OUT/stencils-<PES>x.jsonl
#   kernels    the ways of a stencil one by one: OUT/run_stencils-<PES>x.txt (needs make gpu)
#   nvshmem    one process for each GPU: OUT/nvshmem-<PES>x.json
# SECONDS_A_COMMAND (3600) ends what takes longer; the first two go on from there when they are
# started again with the same OUT. SYSTEMS, GRIDS, CONTENDERS and REPEATS say what these two measure,
# CACHE where systems are kept (OUT/systems).
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "records: $*" >&2; exit 2; }

out=${1:?usage: bench/records.sh OUT [PES] [STEP]...}
mkdir -p "$out" || fail "cannot make the folder '$out'"
out=$(cd "$out" && pwd)
there=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
[ "$there" -gt 0 ] || fail "nvidia-smi shows no GPU here"
pes=${2:-$there}
[[ $pes =~ ^[1-9][0-9]*$ ]] || fail "PES '$pes': give a number of GPUs, such as 8"
[ "$pes" -le "$there" ] || fail "PES $pes, but nvidia-smi shows $there"
steps=("${@:3}")
[ ${#steps[@]} -gt 0 ] || steps=(suite stencils kernels nvshmem)
for step in "${steps[@]}"; do
    [[ $step =~ ^(suite|stencils|kernels|nvshmem)$ ]] ||
        fail "step '$step': choose from suite stencils kernels nvshmem"
done

read -ra systems <<<"${SYSTEMS:-suite:paper18}"
grids=${GRIDS:-256x256,2048x2048,8192x8192,128x128x128,512x512x512}
common=(--pes "$pes" --cache "${CACHE:-$out/systems}")
measure=("${common[@]}" --contenders "${CONTENDERS:-all}" --repeats "${REPEATS:-5}" --timeout 60)
# A kernel that loads lazily while another one spins, waiting for it, never gets to run.
export CUDA_MODULE_LOADING=EAGER
[ ! -d "$root/.venv/bin" ] || export PATH=$root/.venv/bin:$PATH
[ ! -d "$root/build/gpu/python" ] || export PYTHONPATH=$root/build/gpu/python:${PYTHONPATH:-}
limited() { timeout -s INT -k 20 "${SECONDS_A_COMMAND:-3600}" "$@"; }
cpufree() { limited python3 -m cpufree "$@"; }

suite() {
    cpufree bench prepare "${systems[@]}" "${common[@]}" &&
        cpufree bench cg "${systems[@]}" "${measure[@]}" --iterations 100 --out "$out/cg-${pes}x.jsonl"
}
stencils() {
    cpufree bench stencil --per-gpu "$grids" --grid 256x256x256 "${measure[@]}" --iterations 1000 \
        --variant full,no-compute,no-comm --out "$out/stencils-${pes}x.jsonl"
}
kernels() {
    local program=$root/build/gpu/run_stencils
    [ -x "$program" ] || { echo "records: there is no $program: make gpu" >&2; return 1; }
    for set in checks times boxes roles; do
        limited "$program" "$pes" "$set" || return
    done | tee "$out/run_stencils-${pes}x.txt"
}
nvshmem() { limited python3 "$root/bench/nvshmem.py" --pes "$pes" --out "$out/nvshmem-${pes}x.json"; }

failed=0
for step in "${steps[@]}"; do
    echo "== $step"
    "$step" || { failed=1; echo "== $step did not end well" >&2; }
done
exit $failed
