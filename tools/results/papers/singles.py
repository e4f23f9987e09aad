"""What single stores, flags, parts of an iteration and messages in a row take; joules."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial

from cpufree.model.samples import read_samples
from tools.results.records import FOLDER, markdown, medians, newest, problems, values

PARTS = {
    "cg flags": "all of it",
    "cg only products": "products",
    "cg only dots": "dots",
    "cg only updates": "updates",
    "cg only sums": "three exchanges of sums",
}
FLAGS = {
    "warps": "two warps of a block, shared memory",
    "block": "two blocks of a multiprocessor",
    "blocks": "two blocks of two multiprocessors",
    "cluster": "two blocks of a cluster, their shared memory",
    "peer": "two GPUs",
}
SPENDERS = ("cpufree", "single_gpu", "nccl_graph", "graph_while", "nccl", "peer_copy", "idle")


def parts(record: str) -> str:
    """Return microseconds of an iteration of CG, and of its parts by themselves."""
    cases = medians(record)
    rows = [
        [what, *(f"{1e6 * v[one]:.3g}" if one in v else "–" for v in cases.values())]
        for one, what in PARTS.items()
    ]
    return markdown(["part", *(f"{name.split(':')[1]}, µs" for name in cases)], rows)


def _case(record: str, what: str) -> dict[str, float]:
    """Return seconds by contender, of the cases that have these words in their names."""
    return {who: s for name, of in medians(record).items() if what in name for who, s in of.items()}


def widths(record: str) -> str:
    """Return terabytes a second by the width of a store."""
    rates: dict[str, float] = {}
    for name, of in values(record, "bytes_per_second").items():
        if "widths" in name:
            rates.update({who: statistics.median(found) for who, found in of.items()})
    rows = [
        [f"{width} B", *(
            f"{1e-12 * rates[key]:.3g}" if (key := f"{width} B{where}") in rates else "–"
            for where in (", memory", " apart, memory", ", cache")
        )]
        for width in (1, 2, 4, 8, 16)
    ]  # fmt: skip
    heads = ["store", "memory, TB/s", "32 B apart", "L2 cache, TB/s"]
    return markdown(heads, rows)


def flags(record: str) -> str:
    """Return nanoseconds of a flag by distance."""
    found = _case(record, "flags")
    rows = [[what, f"{1e9 * found[one]:.0f}"] for one, what in FLAGS.items() if one in found]
    return markdown(["between", "ns"], rows)


def calls(record: str) -> str:
    """Return microseconds that a block is busy with stores, and with the fence behind them."""
    found = _case(record, "calls")
    sizes = [who.removeprefix("stores, ") for who in found if who.startswith("stores")]
    rows = [
        [size, *(f"{1e6 * found[f'{what}, {size}']:.3g}" for what in ("stores", "fence"))]
        for size in sorted(sizes, key=lambda text: int(text.split()[0]))
    ]
    return markdown(["message", "stores, µs", "fence within the GPU behind them, µs"], rows)


def joules(record: str) -> str:
    """Return millijoules of an iteration by contender, and watts."""
    spent, power = medians(record, "joules"), medians(record, "watts")
    rows = [
        [f"`{one}`", *(
            f"{1e3 * spent[case][one]:.3g} ({power[case][one]:.0f} W)" if one in spent[case]
            else "–" for case in spent
        )]
        for one in SPENDERS if any(one in of for of in spent.values())
    ]  # fmt: skip
    return markdown(["contender", *(f"{case.split(':')[1]}, mJ" for case in spent)], rows)


def windows(record: str) -> str:
    """Return microseconds of a message in windows of 16 and of 10 000."""
    found = {
        (one.way, one.bytes, one.messages): statistics.median(one.seconds) / one.messages
        for one in read_samples(FOLDER / record).rows
        if one.mode == "window"
    }
    rows = [
        [f"`{way}`", f"{size:,}", *(
            f"{1e6 * found[way, size, count]:.3g}" if (way, size, count) in found else "–"
            for count in (16, 10_000)
        )]
        for way, size in dict.fromkeys((way, size) for way, size, _ in found)
    ]  # fmt: skip
    return markdown(["way", "bytes", "of 16, µs a message", "of 10 000"], rows)


def driven(record: str) -> str:
    """Return microseconds of moving tiles in products that the host drives, by hardware queues."""
    columns = [f"{verb}, {queues} queues" for verb in ("gets", "puts") for queues in (8, 32)]
    rows = [
        [case.replace("rows_of_tile", "tiles of"), *(
            f"{1e6 * of[one]:.0f}" if one in of else "–" for one in columns
        )]
        for case, of in medians(record).items()
    ]  # fmt: skip
    return markdown(["PEs that share a GPU", *(f"{one}, µs" for one in columns)], rows)


def copies(record: str) -> str:
    """Return the rate of copies in a program and by the host, by side."""
    rows = []
    for case, found in medians(record).items():
        size = problems(record)[case]["bytes"]
        rates = (
            f"{1e6 * s:.1f} ({size / s / 1e12:.2f})" for s in (found["cpufree"], found["host"])
        )
        rows.append([case.removeprefix("n ") + "²", *rates])
    return markdown(["doubles", "kernel, µs (TB/s)", "host, µs (TB/s)"], rows)


MAKERS: dict[str, tuple[str, str, Callable[[str], str]]] = {
    # Place: how records begin, the command, the table.
    "parts": ("cg-parts-1x", "bench/ablations/cg.py", parts),
    "widths": ("stores-1x", "bench/ablations/stores.py", widths),
    "flags": ("stores-1x", "bench/ablations/stores.py", flags),
    "calls": ("stores-1x", "bench/ablations/stores.py", calls),
    "joules": ("energy-1x", "bench/machine/energy.py", joules),
    "joules by prcg": ("energy-prcg-1x", "bench/machine/energy.py --method prcg", joules),
    "driven": ("host-products-1x", "bench/machine/host_products.py", driven),
    "copies": ("copies-1x", "bench/machine/copy_rate.py", copies),
    "windows": ("windows-of-messages-1x", "-m cpufree model measure", windows),
}


def _placed(begin: str, command: str, make: Callable[[str], str]) -> str:
    record = newest(begin)
    if not record:
        return f"No record yet (`python {command}`).\n"
    return f"{make(record)}\n([record](../bench/results/{record}))\n"


PLACES = {f"single, {name}": partial(_placed, *made) for name, made in MAKERS.items()}


def there() -> Sequence[str]:
    """Return the records that there are."""
    found = (newest(begin) for begin, *_ in MAKERS.values())
    return list(dict.fromkeys(record for record in found if record))
