"""Long runs of generated programs: python any_programs_run.py --feature types --seed 7 --count 500.

Prints which part is taken, for each construct, and the failures as programs that can be run. With
--compiled 1,2,3 programs are compiled, many in a file, and run on as many PEs in turn; with --gpus
0 they run on GPUs, whose PEs may share one; with --gpu-texts the kernels for GPUs run on CPUs. Give
several processes a --seed and a --stride each. --resume FILE keeps a line for each program, and
goes on after those that it has.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import shlex
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path += [str(one) for one in Path(__file__).parents[1].iterdir() if one.is_dir()]

from any_program import Case
from any_program_compiled import compare_compiled
from any_program_oracle import Verdict, compare
from any_program_shrunk import shrunk
from any_programs import FEATURES, Tally, words_of
from dace_random import DACE

_ALL = {**FEATURES, **DACE}

_TOGETHER = 50


def main() -> None:
    """Run as the command line says."""
    asked = _arguments()
    groups = {"all": list(FEATURES), "dace": list(DACE)}
    features = groups.get(asked.feature) or asked.feature.split(",")
    known = _read(asked.resume)
    tally, failures = Tally(), defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for feature in features:
            for case, verdict in _run(feature, asked, known, folder):
                tally.add(feature, case.labels, verdict.outcome)
                if verdict.failed:
                    failures[feature, verdict.kind].append((case, verdict))
        print("\n".join(tally.lines(labels=not asked.brief)))
        if asked.out is not None:
            asked.out.write_text(json.dumps(_record(asked, tally), indent=1) + "\n", "utf-8")
        for (feature, kind), found in sorted(failures.items()):
            print(f"\n# ==== {feature}, {kind}: {len(found)}")
            for case, verdict in found[: asked.show]:
                print(words_of(*_shorter(case, verdict, asked, folder)), end="\n\n")


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feature", default="all", help=f"of {', '.join(_ALL)}; all, or dace")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=500, help="programs of each feature")
    parser.add_argument("--compiled", metavar="PES", help="compile, and run on 1,2,3 PEs in turn")
    parser.add_argument("--gpus", help="GPUs that the PEs are on in turn, such as 0 or 0,1")
    parser.add_argument("--gpu-texts", action="store_true", help="GPUs' kernels on threads")
    parser.add_argument("--stride", type=int, default=1, help="from one seed to the next")
    parser.add_argument("--level", default="-O0", help="of the C++ compiler; the product has -O3")
    parser.add_argument("--resume", type=Path, help="a file with a line for each program")
    parser.add_argument("--out", type=Path, help="a file for the counts, as JSON")
    parser.add_argument("--show", type=int, default=3, help="failures of each kind that are shown")
    parser.add_argument("--brief", action="store_true", help="no line for each construct")
    return parser.parse_args()


def _record(asked: Any, tally: Tally) -> dict[str, Any]:
    total = sum(tally.outcomes.values(), Counter())
    return {
        "command": shlex.join(
            ["python", "tests/python/support/generated/any_programs_run.py", *sys.argv[1:]]
        ),
        "date": datetime.date.today().isoformat(),
        "machine": platform.processor() or platform.machine(),
        "numpy": np.__version__,
        "programs": total.total(),
        "outcomes": dict(total),
        "by feature": {name: dict(one) for name, one in tally.outcomes.items()},
        "seeds": [asked.seed, asked.count, asked.stride],
    }


def _run(
    feature: str, asked: Any, known: dict[tuple[str, int, str], Verdict], folder: Path
) -> Iterator[tuple[Case, Verdict]]:
    """Return cases and verdicts; what is known already is not run again."""
    left: list[Case] = []
    where = asked.gpus or ("gpu texts" if asked.gpu_texts else asked.level)
    how = f"{asked.compiled} {where}" if asked.compiled else ""
    for seed in range(asked.seed, asked.seed + asked.count * asked.stride, asked.stride):
        case = _ALL[feature](seed)
        verdict = known.get((feature, seed, how))
        if verdict is not None:
            yield case, verdict
        else:
            left.append(case)
    size = _TOGETHER if asked.compiled else 1
    for begin in range(0, len(left), size):
        part = left[begin : begin + size]
        for case, verdict in zip(part, _verdicts(part, asked, folder), strict=True):
            _write(asked.resume, case, how, verdict)
            yield case, verdict


def _verdicts(cases: list[Case], asked: Any, folder: Path) -> list[Verdict]:
    if not asked.compiled:
        return [compare(case, folder) for case in cases]
    pes = [int(n) for n in asked.compiled.split(",")]
    gpus = [int(n) for n in asked.gpus.split(",")] if asked.gpus else []
    where = {k: pes[(case.seed // asked.stride) % len(pes)] for k, case in enumerate(cases)}
    texts = asked.gpu_texts
    return compare_compiled(cases, folder, where.__getitem__, asked.level, gpus, gpu_texts=texts)


def _shorter(case: Case, verdict: Verdict, asked: Any, folder: Path) -> tuple[Case, Verdict]:
    """Return a shorter case that fails in the same way, where running one is cheap."""
    if asked.compiled:
        return case, verdict
    kind = verdict.kind

    def fails(other: Case) -> bool:
        found = compare(other, folder)
        return found.failed and found.kind == kind

    if kind == "endless" or not fails(case):
        return case, verdict
    small = shrunk(case, fails)
    return small, compare(small, folder)


def _read(path: Path | None) -> dict[tuple[str, int, str], Verdict]:
    found = {}
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            key = row.pop("feature"), row.pop("seed"), row.pop("compiled")
            found[key] = Verdict(**row)
    return found


def _write(path: Path | None, case: Case, how: str, verdict: Verdict) -> None:
    if path is None:
        return
    row = {"feature": case.feature, "seed": case.seed, "compiled": how, **asdict(verdict)}
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
