"""What the project aimed at on H200, what it reached, and what it missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cpufree.bench.report.tables import micro
from tools.results import other_tables as others
from tools.results import solver_tables as cg
from tools.results import stencil_tables as grids
from tools.results.records import markdown, solver_record

MET, MISSED = "met", "**missed**"


@dataclass(frozen=True)
class Goal:
    """One line: what was to be reached, what is, and how far the measurement carries."""

    what: str
    aim: str
    reached: str
    verdict: str

    def cells(self) -> list[str]:
        return [self.what, self.aim, self.reached, self.verdict]


def verdict(good: bool, where: str = "") -> str:
    """Return whether a goal is met; `where` names what the measurement leaves open."""
    return (MET if good else MISSED) + (f" {where}" if where else "")


def _mean(name: str, those: Callable[..., bool], method: str | None) -> float:
    found = cg.mean(name, those, method)
    assert found is not None
    return found


def _ran(name: str) -> str:
    """Return on how many matrices, and which baselines, a record is about."""
    return f"on {len(cg.groups(name))} of 18 matrices; baselines: {cg.measured_baselines(name)}"


def _solvers() -> Iterator[Goal]:
    six = (
        f"on {len(cg.groups(cg.EIGHT))} of 18 matrices; of peer copies, NCCL and MPI, only NCCL ran"
    )
    base = "geometric mean over the best of peer copies, NCCL and MPI, 8 GPUs, "
    for method, aim in (("cg", 3.0), ("prcg", 4.0)):
        value = _mean(cg.EIGHT, cg.paper_baseline, method)
        yield Goal(f"{base}`{method}`", f"{aim:.1f}×", f"{value:.2f}×", verdict(value >= aim, six))
    value = _mean(cg.EIGHT, cg.any_baseline, None)
    what = "geometric mean over the best of all baselines, 8 GPUs"
    yield Goal(what, "2.0×", f"{value:.2f}×", verdict(value >= 2, _ran(cg.EIGHT)))
    value = _mean(cg.JITTERED_FOUR, cg.any_baseline, None)
    what = "the same, 4 GPUs, suite `paper18`"
    yield Goal(what, "2.0×", f"{value:.2f}×", verdict(value >= 2, _ran(cg.JITTERED_FOUR)))
    gpus = cg.GPUS | cg.JITTERED
    for name in (cg.EIGHT, cg.JITTERED_FOUR, cg.TWO):
        value, case = cg.least(name, cg.any_baseline)
        what = f"worst matrix over the best of all baselines, {gpus[name]} GPUs"
        reached = f"{value:.2f}× ({case})"
        yield Goal(what, "1.0×", reached, verdict(value >= 1, _ran(name)))
    value = cg.petsc_mean(None)
    what = "geometric mean over PETSc with halos through the host, 8 GPUs"
    yield Goal(what, "5×", f"2 GPUs: {value:.2f}×", verdict(value >= 5, "on 2; not run on 8"))


def _memory() -> Iterator[Goal]:
    largest = cg.groups(cg.ONE)[-6:]
    found = [cg.product(group) for group in largest]
    over, share = min(o for o, _ in found), min(s for _, s in found)
    what = "product, 1 GPU, six largest matrices, share of the copy rate"
    yield Goal(what, "0.95", f"{share:.2f} or more", verdict(share >= 0.95))
    what = "product, 1 GPU, six largest, over the best of cuSPARSE"
    yield Goal(what, "1.10×", f"{over:.2f}× or more", verdict(over >= 1.10))
    for big, aim in ((True, 1.2), (False, 2.0)):
        count, text = cg.wins(cg.ONE, aim, big, 6)
        what = f"iteration, 1 GPU, over the best baseline, six {'largest' if big else 'smallest'}"
        yield Goal(
            what, f"{aim:.1f}×", text, verdict(count == 6, f"on {6 - count} of 6" * (count < 6))
        )
    results = solver_record(cg.EIGHT)
    for method, most in (("cg", 10e-6), ("prcg", 7e-6)):
        times = [
            s.median
            for g in cg.groups(cg.EIGHT)
            if cg.nonzeros(results, g) <= 15e6
            for s in results.valid(g)
            if s.name == f"cpufree {method}"
        ]
        text = f"{micro(min(times))} to {micro(max(times))} µs on {len(times)} matrices"
        what = f"iteration of `{method}`, 8 GPUs, up to 15 M nonzeros"
        yield Goal(what, f"{most * 1e6:.0f} µs", text, verdict(max(times) <= most))
    names = {group.case for group in largest}
    there = [g for g in cg.groups(cg.EIGHT) if g.case in names]
    ratios = {g.case: cg.floor(cg.EIGHT, g)[1] / cg.floor(cg.EIGHT, g)[0] for g in there}
    text = ", ".join(f"{case} {ratio:.2f}" for case, ratio in ratios.items())
    what = "iteration, 8 GPUs, six largest, over the time of its bytes"
    yield Goal(what, "1.25", text, verdict(max(ratios.values()) <= 1.25))
    low, high = others.setup_iterations()
    what = "set-up of a large matrix, 1 GPU, in iterations"
    text = f"{low:,.0f} to {high:,.0f}; the upload alone takes more than 20"
    yield Goal(what, "20", text, verdict(high <= 20))


def _grid(name: str, case: str, pes: int, most: float, gain: float, asked: int = 8) -> Goal:
    group = grids.find(name, case, pes)
    seconds, (over, every) = grids.time(name, group), grids.speedups(name, group)
    assert over and every
    text = f"{micro(seconds)} µs, {over:.2f}× ({every:.2f}× over all baselines)"
    open_ = "" if pes == asked else f"on {pes}; not run on {asked}"
    words = [verdict(seconds <= most * 1e-6), verdict(over >= gain)]
    both = words[0] if words[0] == words[1] else f"time {words[0]}, ratio {words[1]}"
    gpus = f"{pes} GPU{'s' * (pes > 1)}"
    what = f"{grids.grid(case)}, {asked} GPUs"
    reached = text if pes == asked else f"{gpus}: {text}"
    return Goal(what, f"{most:g} µs, {gain:g}×", reached, f"{both} {open_}".strip())


def _stencils() -> Iterator[Goal]:
    yield _grid(grids.EIGHT, "256x256 per PE", 8, 1.9, 4)
    yield _grid(grids.EIGHT, "2048x2048 per PE", 8, 5.5, 3.5)
    yield _grid(grids.TWO, "8192x8192 per PE", 2, 115, 1.2)
    yield _grid(grids.TWO_3D, "256x256x256", 2, 5, 4)
    one, two = next(t[2:] for t in grids.weak_scaling() if t[:2] == ("512^3", "float32"))
    good = verdict(two <= 291 and one / two >= 0.97, "on 2; not run on 8")
    text = f"2 GPUs: {two:.0f} µs, {one / two:.1%}"
    yield Goal("512³ per GPU, efficiency from one to all GPUs", "291 µs, 97 %", text, good)
    value = grids.saved("256x256x256 per PE")
    flat = [grids.saved(f"{n}x{n} per PE") for n in (256, 2048, 8192)]
    text = f"2 GPUs: {value:.0%} (two dimensions: {min(flat):.0%} to {max(flat):.0%})"
    what = "communication alone against the best host-driven baseline's, 256³ per GPU"
    yield Goal(what, "75 % less", text, verdict(value >= 0.75))


def _processes() -> Iterator[Goal]:
    ratio = others.process_ratio()
    what = "a process for each GPU over one process, poisson2d 512², 8 GPUs"
    yield Goal(what, "1.05 at most", f"{ratio:.3f}", verdict(ratio <= 1.05))
    slow = others.library_ratios()
    text = f"2 GPUs: `cg` {slow[0]:.2f}×, `prcg` {slow[1]:.2f}×"
    what = "our all-reduce over sums by NVSHMEM, time of an iteration"
    yield Goal(what, "1.5×", text, verdict(min(slow) >= 1.5, "on 2; not run on 8"))
    start = others.first_iteration()
    what = "from the command to the first iteration, 8 processes"
    yield Goal(
        what, "8 s", f"2 processes: {start:.1f} s", verdict(start <= 8, "on 2; not run on 8")
    )
    run = others.billion()
    what = "poisson1d with 10⁹ rows, 8 GPUs, share of the copy rate"
    text = (
        f"{run.by_cg:.2f} by the bytes that Trotter et al. count for CG; {run.by_method:.2f} by "
        f"their rule for `prcg`, which ran; {run.must:.2f} by those that must move"
    )
    yield Goal(what, "0.85", text, verdict(run.by_cg >= 0.85, "by their count of CG"))


PARTS = {
    "solvers": _solvers,
    "memory": _memory,
    "stencils": _stencils,
    "processes": _processes,
}


def table(part: str) -> str:
    """Return the table of a group of goals."""
    rows = [goal.cells() for goal in PARTS[part]()]
    return markdown(["what", "aim", "reached", "verdict"], rows).replace("--:", "---")
