#!/usr/bin/env bash
# Everything about triggered operations on two GPUs: the scripts of the rules on every back end, small
# cases under compute-sanitizer, and the study, step by step, each in a process of its own with a
# bound. What fails does not keep the others from running. Records and logs are in
# OUT/triggered.tar.gz, which is written again after each step; what is printed, in OUT/report.txt.
# Usage: bench/gpu_triggered.sh OUT [GPUS] [STEP]...   (GPUS: 0,1, or 0,0 for one GPU)
# Environment: REPEATS (rounds, 2), EPOCHS and SOAK_SECONDS (of the long run), GRIDS (of Jacobi),
# SANITIZER_SECONDS, SANITIZED (back ends) and SCRIPTS (the first so many), PYTHON. The targets
# and tables are printed last; python -m tools.results.triggered --take OUT/records puts records into
# the documentation.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$1
gpus=${2:-0,1}
shift $(($# < 2 ? $# : 2))
steps=${*:-rules messages order overlap allreduce jacobi flood soak sanitizer}
python=${PYTHON:-python3}
mkdir -p "$out"
records=$out/records
mkdir -p "$records"
for place in build/gpu/python build/triggered/python; do
    [ -d "$place" ] && export PYTHONPATH=${PYTHONPATH:-$PWD/$place}
done
export PYTHONUNBUFFERED=1 CUDA_MODULE_LOADING=EAGER CUDA_DEVICE_MAX_CONNECTIONS=32
export NCCL_NVLS_ENABLE=0
# Processes that hang are asked to end, and killed 10 s later.
bounded() { timeout -k 10 "$@"; }

study() {  # name, seconds, options
    local name=$1 bound=$2
    shift 2
    bounded $((bound + 40)) "$python" -m cpufree bench triggered --gpus "$gpus" --studies "$name" \
        --time-limit "$bound" --json "$records/$name.json" "$@" \
        >"$records/$name.txt" 2>"$records/$name.log"
    echo "== $name: exit $?, $SECONDS s"
    grep -v " round " "$records/$name.log" | sort -u | head -n 12 | cut -c1-400
    cat "$records/$name.txt"
}

# The first line shows whether kernels that wait for others end there. The first scripts alone: they
# have all verbs, and each takes seconds.
sanitizer() {
    bounded 60 "$python" bench/gpu_concurrent_kernels.py --out "$records/concurrent-kernels.json"
    for tool in memcheck racecheck synccheck; do
        bounded "${SANITIZER_SECONDS:-60}" compute-sanitizer --tool $tool \
            --report-api-errors no "$python" bench/gpu_trigger_rules.py \
            --gpus "$gpus" --replays 1 --scripts "${SCRIPTS:-6}" \
            --back-ends "${SANITIZED:-copy_engine,proxy,on_stream}" \
            >"$records/sanitizer-$tool.txt" 2>&1
        echo "== sanitizer, $tool: exit $?, $SECONDS s"
        grep -v -e '^ - leaked' -e nanobind "$records/sanitizer-$tool.txt" | tail -n 6 | cut -c1-300
    done
}

one() {
    case $1 in
        rules)
            bounded 60 "$python" bench/gpu_trigger_rules.py --gpus "$gpus" \
                --json "$records/rules.json" 2>&1 | tail -n 40 | cut -c1-400
            echo "== rules: exit ${PIPESTATUS[0]}, $SECONDS s"
            ;;
        messages) study messages 60 --plot "$records/messages.png" --repeats "${REPEATS:-2}" ;;
        order) study order 20 --repeats "${REPEATS:-2}" --sizes 64 ;;
        overlap) study overlap 20 --repeats 2 ;;
        allreduce) study allreduce 60 --repeats "${REPEATS:-2}" ;;
        jacobi) study jacobi 30 --repeats "${REPEATS:-2}" --grids "${GRIDS:-256,1024,4096}" ;;
        soak) study soak "${SOAK_SECONDS:-30}" --repeats 1 --epochs "${EPOCHS:-100000}" --back-ends copy_engine,block ;;
        flood) study flood 15 --repeats 1 ;;
        sanitizer) sanitizer ;;
        *) echo "gpu_triggered: there is no step '$1'" >&2 ;;
    esac
}

for step in $steps; do
    one "$step" 2>&1 | tee -a "$out/report.txt"
    tar -C "$records" -czf "$out/triggered.tar.gz" . 2>/dev/null
done
# The goals, where the checkout has the command that compares records with them.
if [ -f tools/results/triggered.py ]; then
    bounded 60 "$python" -m tools.results.triggered --show "$records" 2>&1 | tee -a "$out/report.txt"
fi
