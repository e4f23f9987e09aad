#!/usr/bin/env bash
# Makes the records of bench/results about GPUs again, on the GPUs of this machine.
#
#   bench/records.sh OUT [PES] [STEP]...
#
# OUT: folder of the results, made if it is not there. PES: GPUs in use, a number or several, such as
# 1,8 (all). Steps, in this order:
#   suite      suite paper18, all contenders that are here: OUT/cg-<PES>x.jsonl
#   structured the same on suite structured, of few distinct values: OUT/cg-structured-<PES>x.jsonl
#   overlap    suite paper18 without computing, and without communication: OUT/cg-overlap-<PES>x.jsonl
#   tolerance  the same to a tolerance of 1e-6, with Jacobi: OUT/cg-rtol-<PES>x.jsonl
#   irregular  suites poisson1d (reductions), heart (halos), consolidation: OUT/cg-irregular-<PES>x.jsonl
#   stencils   grids of the thesis, discrete kernels beside: OUT/stencils-<PES>x.jsonl
#   double     the same in double precision, and periodic: OUT/stencils-double-<PES>x.jsonl
#   kernels    the ways of a stencil one by one: OUT/run_stencils-<PES>x.txt (needs make gpu)
#   nvshmem    one process for each GPU: OUT/nvshmem-<PES>x.json
#   model      the communication model: OUT/model-<PES>x
#   programs   compiled programs, against host-driven ones: OUT/programs-<PES>x.jsonl
#   dace       DaCe's distributed programs; CASES: folder of bench/dace_cases.py: OUT/dace-<PES>x.jsonl
#   time       time to solution, "auto" against the best choice: OUT/time-<PES>x
#   triggered  triggered operations: messages from each GPU to the next, all-reduces and Jacobi over
#              all: OUT/triggered-<PES>x, a folder for each pair (needs tools/carry_triggered.sh)
# From kernels on, steps take the largest of PES; those from programs to time end after PART_SECONDS
# (500), about. SECONDS_A_COMMAND (3600) ends what takes longer; the steps before kernels go on from
# there when they are started again with the same OUT. SYSTEMS, GRIDS (of each GPU), GRID (of all of
# them), CONTENDERS, PROGRAMS and REPEATS say what is measured, CACHE where systems are kept
# (OUT/systems).
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "records: $*" >&2; exit 2; }
all=(suite structured overlap tolerance irregular stencils double kernels nvshmem model programs dace time
    triggered)

out=${1:?usage: bench/records.sh OUT [PES] [STEP]...}
mkdir -p "$out" || fail "cannot make the folder '$out'"
out=$(cd "$out" && pwd)
there=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
[ "$there" -gt 0 ] || fail "nvidia-smi shows no GPU here"
pes=${2:-$there}
[[ $pes =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || fail "PES '$pes': give numbers of GPUs, such as 8 or 1,8"
most=$(tr , '\n' <<<"$pes" | sort -n | tail -1)
[ "$most" -le "$there" ] || fail "PES $pes, but nvidia-smi shows $there"
steps=("${@:3}")
[ ${#steps[@]} -gt 0 ] || steps=("${all[@]}")
for step in "${steps[@]}"; do
    [[ " ${all[*]} " == *" $step "* ]] || fail "step '$step': choose from ${all[*]}"
done

read -ra systems <<<"${SYSTEMS:-suite:paper18}"
grids=${GRIDS:-256x256,2048x2048,8192x8192,128^3,256^3,512^3}
common=(--pes "$pes" --cache "${CACHE:-$out/systems}")
measure=("${common[@]}" --contenders "${CONTENDERS:-all}" --repeats "${REPEATS:-5}" --timeout 60)
name=${pes//,/-}x
part=${PART_SECONDS:-500}
# A kernel that loads lazily while another one spins, waiting for it, never gets to run.
export CUDA_MODULE_LOADING=EAGER
[ ! -d "$root/.venv/bin" ] || export PATH=$root/.venv/bin:$PATH
[ ! -d "$root/build/gpu/python" ] || export PYTHONPATH=$root/build/gpu/python:${PYTHONPATH:-}
limited() { timeout -s INT -k 20 "${SECONDS_A_COMMAND:-3600}" "$@"; }
cpufree() { limited python3 -m cpufree "$@"; }
solve() { # solve FILE "SYSTEM..." OPTION...
    local file=$out/$1 of
    read -ra of <<<"$2"
    shift 2
    cpufree bench prepare "${of[@]}" "${common[@]}" &&
        cpufree bench cg "${of[@]}" "${measure[@]}" --out "$file" "$@"
}
iterate() { # iterate FILE OPTION...
    cpufree bench stencil --per-gpu "$grids" --grid "${GRID:-256^3}" "${measure[@]}" --iterations 1000 \
        --out "$out/$1" "${@:2}"
}

suite() { solve "cg-$name.jsonl" "${systems[*]}" --iterations 100; }
structured() { solve "cg-structured-$name.jsonl" "${systems[*]//suite:paper18/suite:structured}" --iterations 100; }
overlap() {
    solve "cg-overlap-$name.jsonl" "${systems[*]}" --iterations 100 --variant full,no-compute,no-comm
}
tolerance() { solve "cg-rtol-$name.jsonl" "${systems[*]}" --rtol 1e-6 --pc jacobi; }
irregular() { solve "cg-irregular-$name.jsonl" "suite:poisson1d suite:heart suite:consolidation" --iterations 100; }
stencils() { iterate "stencils-$name.jsonl" --variant full,no-compute,no-comm; }
double() { iterate "stencils-double-$name.jsonl" --precision double --boundary dirichlet,periodic; }
kernels() {
    local program=$root/build/gpu/run_stencils
    [ -x "$program" ] || { echo "records: there is no $program: make gpu" >&2; return 1; }
    for set in checks times boxes specialized; do
        limited "$program" "$most" "$set" || return
    done | tee "$out/run_stencils-${most}x.txt"
}
model() { limited "$root/bench/model_gpu.sh" "$out/model-${most}x"; }
programs() {
    local of=${PROGRAMS:-jacobi_2d,heat_3d,acoustic,cavity_flow}
    limited python3 "$root/bench/programs.py" --pes ${pes//,/ } --program ${of//,/ } --seconds "$part" \
        --out "$out/programs-${most}x.jsonl"
}
dace() {
    [ -n "${CASES:-}" ] || { echo "records: let CASES name a folder of bench/dace_cases.py" >&2; return 1; }
    limited python3 "$root/bench/gpu_dace.py" --gpus "$most" --folder "$CASES" \
        --libraries "${LIBRARIES:-}" --seconds "$part" --out "$out/dace-${most}x.jsonl"
}
time_to_solution() { GPUS=$most limited "$root/bench/gpu_time.sh" "$out/time-${most}x" "$part"; }
triggered() {
    local to=$out/triggered-${most}x k
    [ "$most" -gt 1 ] || { echo "records: triggered operations go from one GPU to another" >&2; return 1; }
    for ((k = 0; k < most; ++k)); do
        limited "$root/bench/gpu_triggered.sh" "$to/$k" "$k,$(((k + 1) % most))" messages
    done
    # Ten million epochs take four minutes by the copy engine and three by a block.
    EPOCHS=${EPOCHS:-10000000} SOAK_SECONDS=${SOAK_SECONDS:-460} limited \
        "$root/bench/gpu_triggered.sh" "$to/all" "$(seq -s, 0 $((most - 1)))" allreduce jacobi soak
}
nvshmem() { limited python3 "$root/bench/nvshmem.py" --pes "$most" --out "$out/nvshmem-${most}x.json"; }

failed=0
for step in "${steps[@]}"; do
    echo "== $step"
    case $step in time) does=time_to_solution ;; *) does=$step ;; esac
    "$does" || { failed=1; echo "== $step did not end well" >&2; }
done
exit $failed
