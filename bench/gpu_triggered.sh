#!/usr/bin/env bash
# Everything about triggered operations on two GPUs: the scripts of the rules on every back end, small
# cases under compute-sanitizer, and the study, step by step, each in a process of its own with a
# bound. What fails does not keep the others from running.
# Usage: bench/gpu_triggered.sh OUT [GPUS] [STEP]...   (GPUS: 0,1, or 0,0 for one GPU)
set -uo pipefail
cd "$(dirname "$0")/.."
out=$1
gpus=${2:-0,1}
shift $(($# < 2 ? $# : 2))
steps=${*:-rules messages overlap allreduce soak flood jacobi sanitizer}
python=${PYTHON:-python3}
mkdir -p "$out"
export PYTHONPATH=${PYTHONPATH:-build/gpu/python} PYTHONUNBUFFERED=1 CUDA_MODULE_LOADING=EAGER
export CUDA_DEVICE_MAX_CONNECTIONS=32 NCCL_NVLS_ENABLE=0

study() {  # name, seconds, options
    local name=$1 bound=$2
    shift 2
    timeout $((bound + 40)) "$python" -m cpufree bench triggered --gpus "$gpus" --studies "$name" \
        --time-limit "$bound" --json "$out/$name.json" "$@" >"$out/$name.txt" 2>"$out/$name.log"
    local rc=$?
    echo "== $name: exit $rc, $SECONDS s"
    grep -v "round" "$out/$name.log" | sort | uniq | head -n 12 | cut -c1-300
    cat "$out/$name.txt"
}

for step in $steps; do
    case $step in
        rules)
            timeout 120 "$python" bench/gpu_trigger_rules.py --gpus "$gpus" \
                --json "$out/rules.json" 2>&1 | tail -n 30
            ;;
        messages) study messages 150 --plot "$out/messages.png" --repeats 3 ;;
        overlap) study overlap 60 --repeats 2 ;;
        allreduce) study allreduce 150 --repeats 3 ;;
        jacobi) study jacobi 120 --repeats 3 ;;
        soak) study soak 60 --repeats 1 ;;
        flood) study flood 60 --repeats 2 ;;
        sanitizer)
            timeout 100 compute-sanitizer --tool memcheck "$python" bench/gpu_trigger_rules.py \
                --gpus "$gpus" --replays 1 --scripts 3 \
                --back-ends copy_engine,proxy,on_stream,block 2>&1 | tail -n 12
            ;;
        *) echo "gpu_triggered: there is no step '$step'" >&2; exit 1 ;;
    esac
done
