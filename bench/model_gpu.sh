#!/usr/bin/env bash
# Measures, fits, validates and compares the communication model on the GPUs of this machine, in some
# five minutes on two GPUs.
#
#   bench/model_gpu.sh OUT [STEP]...
#
# OUT: folder of the results, made if it is not there. Steps, in this order:
#   facts     GPUs, driver, links: OUT/facts.txt
#   load      compiles and loads the probes' kernels, so that no measurement does: OUT/load.txt
#   measure   cpufree model measure --quick: OUT/samples.jsonl
#   fit       OUT/machine.json
#   validate  OUT/validate.json, OUT/validate.txt
#   plots     OUT/measured.png, OUT/fit.png
#   compare   iterations of the committed records against predictions: OUT/compare.json
#   shared    tests of PEs that share GPUs: OUT/shared.txt
# Each step has a limit, and one that fails does not keep the others from running. PYTHON (python3) is
# the interpreter; the package is the one that it imports: PYTHONPATH=build/gpu/python, or
# build/gpu-usual/python. HALO: the matrix whose halos are exchanged. TESTS: those of shared, for
# pytest -k.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: bench/model_gpu.sh OUT [STEP]...}
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
python=${PYTHON:-python3}
all=(facts load measure fit validate plots compare shared)
steps=("${@:2}")
[ ${#steps[@]} -gt 0 ] || steps=("${all[@]}")
for step in "${steps[@]}"; do
    [[ " ${all[*]} " == *" $step "* ]] ||
        { echo "model_gpu: step '$step': choose from ${all[*]}" >&2; exit 2; }
done

# Kernels spin: all code is loaded before. No multicast. More PEs than 8 share a GPU.
export CUDA_MODULE_LOADING=EAGER NCCL_NVLS_ENABLE=0 CUDA_DEVICE_MAX_CONNECTIONS=32
export PYTHONUNBUFFERED=1 MPLBACKEND=Agg COLUMNS=160
export CPUFREE_KERNEL_CACHE=${CPUFREE_KERNEL_CACHE:-${TMPDIR:-/tmp}/cpufree-kernels}

cpufree() { "$python" -m cpufree "$@"; }
records=(bench/results/cg-1x-2026-11-24.jsonl bench/results/cg-2x-sorted-2026-11-23.jsonl
    bench/results/cg-4x-2026-11-22.jsonl bench/results/cg-8x-2026-11-22.jsonl)

facts() {
    nvidia-smi --query-gpu=index,name,driver_version,clocks.sm,clocks.mem,memory.total --format=csv
    nvidia-smi topo -m
    cpufree --version
    nproc
}
load() {
    "$python" - <<'PY'
from cpufree.extension import load_gpu_core

core = load_gpu_core()
gpus = [gpu["index"] for gpu in core.gpus()][:2]
print(gpus, core.gpu_note(), core.kernel_compiler())
for pair in (gpus, gpus[:1] * 2):
    probe = core.Probe(2, 1, 1 << 20, gpus=pair, threads=256)
    print(pair, probe.run("store-block", "single", 8, 1, 16, 3, 5, 10.0))
PY
}
shared() {
    # Other methods take their time to compile where kernels are not built in.
    "$python" -m pytest -q -p no:cacheprovider tests/python/gpu/test_gpu_shared.py \
        --durations=5 -k "${TESTS:-not other_methods}"
}
measure() {
    local halo=()
    [ -z "${HALO:-}" ] || halo=(--halo "$HALO")
    cpufree model measure --quick "${halo[@]}" --out "$out/samples.jsonl"
}
fit() { cpufree model fit "$out/samples.jsonl" --out "$out/machine.json"; }
validate() {
    cpufree model validate "$out/machine.json" "$out/samples.jsonl" --json "$out/validate.json"
}
plots() {
    "$python" - "$out" <<'PY'
import sys

from cpufree.machine.communication import find_communication
from cpufree.model.plots import draw_fit, draw_samples, save_plot
from cpufree.model.samples import read_samples

out = sys.argv[1]
samples = read_samples(f"{out}/samples.jsonl")
save_plot(draw_samples(samples), f"{out}/measured.png")
save_plot(draw_fit(find_communication(f"{out}/machine.json"), samples), f"{out}/fit.png")
PY
}
compare() { cpufree model compare "${records[@]}" --json "$out/compare.json"; }

declare -A limit=([facts]=60 [load]=120 [measure]=150 [fit]=150 [validate]=60
    [plots]=60 [compare]=60 [shared]=240)
declare -A took=()
for step in "${steps[@]}"; do
    begin=$SECONDS
    # A step is a function: it runs in a shell of its own, so that timeout can end it.
    export out python HALO TESTS
    # shellcheck disable=SC2016
    timeout -k 10 "${limit[$step]}" bash -c \
        "$(declare -f cpufree facts load measure fit validate plots compare shared)
         $(declare -p records); $step" >"$out/$step.txt" 2>&1
    took[$step]="exit $?, $((SECONDS - begin)) s"
    echo "model_gpu: $step: ${took[$step]}"
done

# Exit code 4 of validate: some checks are beyond their limits, which is a result.
echo
[ ! -s "$out/shared.txt" ] || tail -3 "$out/shared.txt"
[ ! -s "$out/validate.txt" ] || grep -v " and " "$out/validate.txt" | tail -60
[ ! -s "$out/compare.txt" ] || tail -8 "$out/compare.txt"
"$python" - "$out" <<'PY'
import json
import pathlib
import sys

file = pathlib.Path(sys.argv[1]) / "machine.json"
if file.exists():
    found = json.loads(file.read_text())
    print(f"\n{'way':22}{'8 B':>10}{'64 KiB':>10}{'8 MiB':>10}  us")
    from cpufree.machine.communication import find_communication
    from cpufree.model.use import single

    machine = find_communication(str(file))
    for name, way in machine.ways.items():
        times = [float(single(way, float(size))) * 1e6 for size in (8, 65536, 1 << 23)]
        print(f"{name:22}" + "".join(f"{one:10.2f}" for one in times))
    for name, one in machine.constants.items():
        if "kernel" in name or "flag" in name or "sum of" in name:
            print(f"{name:44}{one.value * 1e6:10.2f} us")
PY
