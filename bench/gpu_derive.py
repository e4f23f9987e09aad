"""What follows from the raw times of the GPU benchmark: floors, fractions, verdicts.

All of it can be derived again from the record alone.
"""

from __future__ import annotations

import statistics
from typing import Any

from timing import Spread, judge, spread

from cpufree.bench.work import count_bytes

# Most microseconds per iteration of 5-point systems of 262 144 rows, by number of GPUs.
TARGET_ROWS = 512 * 512
TARGETS: dict[int, dict[str, float]] = {
    1: {"cg": 9.0, "prcg": 7.0, "pipecg": 7.0},
    4: {"cg": 11.0, "prcg": 7.5, "pipecg": 7.5},
    8: {"cg": 12.0, "prcg": 8.0, "pipecg": 8.0},
}
# The all-reduces of an iteration by the names that run_channels gives them.
REDUCTIONS = {"cg": ("sum 1", "sum 2"), "prcg": ("sum 5",), "pipecg": ("push pull 3",)}

Record = dict[str, Any]


def found(record: Record, part: str) -> list[Record]:
    """Return what a part has found, nothing where it did not run."""
    results: list[Record] = record["parts"].get(part, {}).get("found", [])
    return results


def copy_rate(record: Record, pes: int) -> float | None:
    """Return the bytes per second that the first `pes` GPUs copy together; None: not measured."""
    rates = [
        statistics.median(entry["bytes_per_second"])
        for entry in found(record, "machine")
        if "bytes_per_second" in entry
    ]
    return sum(rates[:pes]) if len(rates) >= pes else None


def reduction_seconds(record: Record, pes: int, threads: int, method: str) -> float | None:
    """Return what the reductions of an iteration take by themselves; None: not measured.

    Of the block size in use where that was measured, else of the quickest.
    """
    total = 0.0
    for what in REDUCTIONS[method]:
        here = [
            entry
            for entry in found(record, "reductions")
            if entry["gpus"] == pes and entry["what"] == what and entry["right"]
        ]
        same = [entry for entry in here if entry["threads"] == threads]
        if not here:
            return None
        total += min(entry["seconds"] for entry in same or here)
    return total


def per_iteration(method: Record) -> Spread:
    """Return the seconds of the kernels over the iterations."""
    return spread([t / method["iterations"] for t in method["seconds"]])


def marginal(method: Record) -> Spread:
    """Return the seconds that an iteration more costs: free of launch, start and final checks."""
    more = method["iterations"] - method["short_iterations"]
    pairs = zip(method["seconds"], method["short_seconds"], strict=True)
    return spread([(whole - part) / more for whole, part in pairs])


def derive_method(record: Record, entry: Record, name: str) -> Record:
    """Return time, floor and fractions of one method on one matrix and number of GPUs."""
    pes, threads = entry["pes"], entry["plan"].get("threads", 1)
    time = per_iteration(entry["methods"][name])
    count = count_bytes(entry["rows"], entry["nnz"], entry["plan"]["matrix_bytes"], name)
    spmv = 12.0 * entry["nnz"] + 20.0 * entry["rows"]
    rate = copy_rate(record, pes)
    reduction = reduction_seconds(record, pes, threads, name)
    result: Record = {
        "name": entry["name"],
        "rows": entry["rows"],
        "nnz": entry["nnz"],
        "pes": pes,
        "method": name,
        "iterations": entry["methods"][name]["iterations"],
        "seconds_per_iteration": time,
        "marginal_seconds_per_iteration": marginal(entry["methods"][name]),
        "bytes": {"all": count["csr"], "format": count["format"], "product": spmv},
        "reduction_seconds": reduction,
        "floor_seconds": None,
        "fraction_of_copy": None,
        "fraction_of_copy_product": None,
    }
    if rate is not None:
        result["floor_seconds"] = (reduction or 0.0) + count["csr"] / rate
        result["fraction_of_copy"] = count["csr"] / rate / time["median"]
        result["fraction_of_copy_product"] = spmv / rate / time["median"]
    return result


def derive_part(record: Record, part: str) -> list[Record]:
    """Return all of a part, with the speed-up over one GPU."""
    rows = [
        derive_method(record, entry, name)
        for entry in found(record, part)
        for name in entry["methods"]
    ]
    alone = {
        (row["name"], row["method"]): row["seconds_per_iteration"]["median"]
        for row in rows
        if row["pes"] == 1
    }
    for row in rows:
        one = alone.get((row["name"], row["method"]))
        time = row["seconds_per_iteration"]["median"]
        row["speedup"] = one / time if one is not None else None
    return rows


def judge_latency(record: Record) -> list[Record]:
    """Return the latencies with verdicts where there is a target."""
    rows = derive_part(record, "latency")
    raw = {
        (entry["name"], entry["pes"], name): [t / m["iterations"] for t in m["seconds"]]
        for entry in found(record, "latency")
        for name, m in entry["methods"].items()
    }
    for row in rows:
        limit = TARGETS.get(row["pes"], {}).get(row["method"])
        if row["rows"] != TARGET_ROWS or limit is None or record["engine"] != "cuda_p2p":
            row["target_seconds"], row["verdict"] = None, "not judged"
            continue
        row["target_seconds"] = limit / 1e6
        times = raw[row["name"], row["pes"], row["method"]]
        row["verdict"] = judge(times, at_most=limit / 1e6)
    return rows


def derive_variants(record: Record) -> list[Record]:
    """Return the variants and their time relative to what the engine chooses by itself.

    They are measured one after another: "faster" and "slower" are said only where the ranges do
    not overlap.
    """
    rows = []
    chosen: dict[tuple[str, int], Spread] = {}
    for entry in found(record, "variants"):
        if "prcg" not in entry["methods"]:
            continue
        time, key = per_iteration(entry["methods"]["prcg"]), (entry["name"], entry["pes"])
        if not entry["tuning"]:
            chosen[key] = time
        row: Record = {"name": entry["name"], "pes": entry["pes"], "tuning": entry["tuning"]}
        row |= {"plan": entry["plan"], "seconds_per_iteration": time}
        row |= {"of_chosen": None, "against_chosen": "not judged"}
        if entry["tuning"] and key in chosen:
            base = chosen[key]
            row["of_chosen"] = time["median"] / base["median"]
            row["against_chosen"] = (
                "faster"
                if time["max"] < base["min"]
                else "slower"
                if time["min"] > base["max"]
                else "within noise"
            )
        rows.append(row)
    return rows


def derive_peers(record: Record) -> list[Record]:
    """Return the other solvers, and how many of their times ours on one GPU is."""
    ours = {
        entry["name"]: per_iteration(entry["methods"]["prcg"])["median"]
        for part in ("latency", "variants")
        for entry in found(record, part)
        if entry["pes"] == 1 and not entry["tuning"] and "prcg" in entry["methods"]
    }
    rows = []
    for entry in found(record, "peers"):
        time = spread([t / entry["iterations"] for t in entry["seconds"]])
        own = ours.get(entry["name"])
        row: Record = {key: entry[key] for key in ("name", "solver", "version", "rows")}
        row |= {"seconds_per_iteration": time, "prcg_seconds_per_iteration": own}
        row["of_prcg"] = time["median"] / own if own is not None else None
        rows.append(row)
    return rows


def derive_setups(record: Record) -> list[Record]:
    """Return the set-up times of the large systems, without partition and without warm-up."""
    return [
        {
            "name": entry["name"],
            "rows": entry["rows"],
            "nnz": entry["nnz"],
            "pes": entry["pes"],
            "partition": entry["partition"],
            "partition_seconds": entry["partition_seconds"],
            "first_seconds": entry["setup_seconds"][0],
            "seconds": min(entry["setup_seconds"]),
        }
        for entry in found(record, "large")
    ]


def derive(record: Record) -> Record:
    """Return all that follows from the raw times so far."""
    counts = sorted({entry["pes"] for part in record["parts"] for entry in sized(record, part)})
    return {
        "copy_bytes_per_second": {str(pes): copy_rate(record, pes) for pes in counts},
        "latency": judge_latency(record),
        "sweep": derive_part(record, "sweep"),
        "large": derive_part(record, "large"),
        "setups": derive_setups(record),
        "variants": derive_variants(record),
        "peers": derive_peers(record),
    }


def sized(record: Record, part: str) -> list[Record]:
    """Return what a part has found for some number of GPUs."""
    return [entry for entry in found(record, part) if "pes" in entry]
