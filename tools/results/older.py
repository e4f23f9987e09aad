"""Records of the time before benchmarks were declared, as the lines that declarations write.

So that all tables read one format: `problem` and `measurement` lines, seconds of a step, an
iteration or a call (docs/benchmarking.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cpufree.bench.core.work import count_bytes

Line = dict[str, Any]
PROGRAM_WAYS = {"ours": "cpufree", "hosted": "host-driven", "hand": "hand-written"}
DACE_WAYS = {
    "us": "ours",
    "without_roles_us": "without roles",
    "discrete_copies_us": "by host, copies",
    "discrete_stores_us": "by host, stores",
    "own_us": "`cpufree.program`",
    "hosted_us": "by host",
}
DACE_OTHERS = {"dace_gpu": "DaCe's GPU code", "mpi": "MPI by hand"}


def declared(record: list[Line]) -> list[Line]:
    """Return the lines of a record of any age, its header first."""
    head = record[0]
    if head.get("kind") == "header" and "schema" in head:
        return record
    of: dict[str, Callable[[list[Line]], Iterator[Line]]] = {
        "cpu": _cpu, "builds": _builds, "kernels": _kernels, "dace": _dace, "programs": _programs,
        "choices": _choices,
        "preconditioners": _preconditioners, "expected": _expected,
    }  # fmt: skip
    return [{**head, "kind": "header"}, *of[_kind(record)](record)]


def _kind(record: list[Line]) -> str:
    head = record[0]
    if head.get("kind") == "choice":
        return "choices"
    known = {"trees": "builds", "kernels": "kernels", "large": "cpu"}
    known |= {"results": "preconditioners", "lines": "expected"}
    for key, kind in known.items():
        if key in head:
            return kind
    return "dace" if head["kind"] == "header" else "programs"


def _choices(record: list[Line]) -> Iterator[Line]:
    for line in record:
        if line["kind"] == "choice" and line["round"] and line["converged"]:  # round 0 warms up
            kept = ("seconds", "iterations", "engine", "pes", "method", "why")
            yield {"kind": "problem", **{key: line[key] for key in ("case", "rows", "nnz")}}
            yield _measured(
                line["case"], line["choice"], line["round"] - 1, **{k: line[k] for k in kept}
            )


def _measured(case: str, contender: str, number: int = 0, **more: Any) -> Line:
    return {"kind": "measurement", "case": case, "contender": contender, "round": number, **more}


def _builds(record: list[Line]) -> Iterator[Line]:
    for tree, steps in record[0]["trees"].items():
        for step, took in steps.items():
            yield _measured(step, tree, seconds=took["wall"], processors=took["processors"])


def _kernels(record: list[Line]) -> Iterator[Line]:
    for one in record[0]["kernels"]:
        case = f"{one['method']}, {one['pc']}, {one['for']}"
        yield _measured(case, "NVRTC", seconds=one["seconds"], bytes=one["bytes"])


def _preconditioners(record: list[Line]) -> Iterator[Line]:
    for system in record[0]["results"]:
        case = system["name"]
        yield {"kind": "problem", "case": case, "rows": system["rows"], "nnz": system["nnz"]}
        for pc, found in system.items():
            for number, seconds in enumerate(found["seconds"] if isinstance(found, dict) else ()):
                count = found["iterations"]
                yield _measured(case, pc, number, seconds=seconds, iterations=count)


def _expected(record: list[Line]) -> Iterator[Line]:
    names = {"iterations": "taken", "expected": "expected", "by_rows": "by rows"}
    for line in record[0]["lines"]:
        if line["reason"] == "CONVERGED_RTOL":
            for key, who in names.items():
                yield _measured(line["matrix"], who, iterations=line[key])


def _cpu(record: list[Line]) -> Iterator[Line]:
    elements, bytes_each = (record[0]["triad"][k] for k in ("elements", "bytes_per_element"))
    for system in record[0]["large"]:
        name, raw, k = system["name"], system["raw"], system["iterations"]
        yield {"kind": "problem", "case": name, **{key: system[key] for key in ("rows", "nnz")}}
        for number, seconds in enumerate(raw["triad_pass_seconds"]):
            rate = elements * bytes_each / seconds / 1e9
            yield _measured(name, "triad", number, seconds=seconds, **{"GB/s": rate})
        for number, seconds in enumerate(raw["scipy_seconds"]):
            yield _measured(name, "scipy", number, seconds=seconds / k)
        for method, times in raw["methods"].items():
            count = count_bytes(system["rows"], system["nnz"], system["matrix_bytes"], method)
            least = min(count["csr"], count["format"])
            both = zip(times["wall_seconds"], times["kernel_seconds"], strict=True)
            for number, (wall, kernel) in enumerate(both):
                more = {"seconds": wall / k, "kernel": kernel / k, "GB/s": least * k / kernel / 1e9}
                yield _measured(name, method, number, **more)


def _programs(record: list[Line]) -> Iterator[Line]:
    for line in record[1:]:
        if line["kind"] not in ("program", "jacobi"):
            yield line
            continue
        of = {"program": line["program"], "n": line["n"], "type": line.get("type", "float64")}
        steps = line["steps"]
        for case, contender, pes, times in _calls_of(line):
            where = {**of, "pes": str(pes)}
            yield {"kind": "problem", "case": case, **where, "points": line["n"]}
            kernel = times.get("timings", times).get("kernel")
            both = {"seconds": times.get("seconds", kernel), "kernel": kernel}
            each = {what: value / steps for what, value in both.items() if value is not None}
            yield _measured(case, contender, **where, **each, on_chip=times.get("on_chip"))


def _calls_of(line: Line) -> Iterator[tuple[str, str, int, Line]]:
    """Yield case, contender, number of GPUs and times of what a line of programs has."""
    case = f"{line['program']} {line['n']} {line.get('type', '')}"
    for key, value in line.items():
        way, _, pes = key.partition("_")
        if way in PROGRAM_WAYS and "error" not in value:
            yield f"{case} {pes}", PROGRAM_WAYS[way], int(pes), value
    for rival, seconds in {**line.get("rivals", {}), **line.get("seconds", {})}.items():
        yield f"{case} 1", rival.removesuffix("_fused"), 1, {"seconds": seconds}


def _dace(record: list[Line]) -> Iterator[Line]:
    own = {line["case"] for line in record if line["kind"] == "dace"}
    for line in record[1:]:
        times = {DACE_WAYS[key]: line[key] for key in DACE_WAYS if key in line}
        if line["kind"] == "dace":
            yield {"kind": "problem", "case": line["case"], "places": line["gpus"]}
        elif line["kind"] == "puts":
            times = {line["puts"]: line["us"]}
        else:
            times = {DACE_OTHERS[line["kind"]]: line["us"]} if line["case"] in own else {}
        for contender, us in times.items():
            yield _measured(line["case"], contender, seconds=us / 1e6)
