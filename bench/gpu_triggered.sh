#!/usr/bin/env bash
# Everything about triggered operations on two GPUs: the scripts of the rules on every back end, small
# cases under compute-sanitizer, and the study, step by step, each in a process of its own with a
# bound. What fails does not keep the others from running. Records and logs are in
# OUT/triggered.tar.gz, which is written again after each step; what is printed, in OUT/report.txt.
# Usage: bench/gpu_triggered.sh OUT [GPUS] [STEP]...   (GPUS: 0,1, or 0,0 for one GPU)
set -uo pipefail
cd "$(dirname "$0")/.."
out=$1
gpus=${2:-0,1}
shift $(($# < 2 ? $# : 2))
steps=${*:-rules messages overlap allreduce soak flood jacobi sanitizer}
python=${PYTHON:-python3}
mkdir -p "$out"
records=$(mktemp -d)
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

one() {
    case $1 in
        rules)
            bounded 120 "$python" bench/gpu_trigger_rules.py --gpus "$gpus" \
                --json "$records/rules.json" 2>&1 | tail -n 40 | cut -c1-400
            echo "== rules: exit ${PIPESTATUS[0]}, $SECONDS s"
            ;;
        messages) study messages 100 --plot "$records/messages.png" --repeats 3 ;;
        overlap) study overlap 30 --repeats 2 ;;
        allreduce) study allreduce 100 --repeats 3 ;;
        jacobi) study jacobi 100 --repeats 3 ;;
        soak) study soak 40 --repeats 1 ;;
        flood) study flood 40 --repeats 2 ;;
        sanitizer)
            bounded 100 compute-sanitizer --tool memcheck "$python" bench/gpu_trigger_rules.py \
                --gpus "$gpus" --replays 1 --scripts 3 \
                --back-ends copy_engine,proxy,on_stream,block 2>&1 | tail -n 15 | cut -c1-300
            echo "== sanitizer: exit ${PIPESTATUS[0]}, $SECONDS s"
            ;;
        *) echo "gpu_triggered: there is no step '$1'" >&2 ;;
    esac
}

for step in $steps; do
    one "$step" 2>&1 | tee -a "$out/report.txt"
    tar -C "$records" -czf "$out/triggered.tar.gz" . 2>/dev/null
done
rm -rf "$records"
