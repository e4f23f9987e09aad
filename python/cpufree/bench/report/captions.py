"""What reports say of machine, versions and conditions, in a line each."""

from __future__ import annotations

from cpufree.bench.core.lines import Header
from cpufree.bench.report.collected import AnyResults

DISTURBED = 0.02  # share of the processor that other programs may take


def warnings(results: AnyResults) -> list[str]:
    """Return why the results are not for the record, nothing where they are."""
    others = max((end["others"] or 0.0 for end in results.ends), default=0.0)
    found = []
    if others > DISTURBED:
        found.append(f"disturbed: other programs took {others:.0%} of the processor")
    for missing in results.unfinished:
        found.append("the run did not finish" + (f": {missing}" if missing else ""))
    return found


def machine_text(header: Header) -> str:
    """Return machine, versions, commit and date in a line."""
    machine, versions = header["machine"], header["versions"]
    parts = [machine["gpus"]] if machine["gpus"] else []
    driver, cuda = versions.get("driver"), versions.get("cuda_runtime")
    parts += [f"driver {driver}"] if driver else []
    parts += [f"CUDA {cuda}"] if driver and cuda else []
    parts.append(f"{machine['cpu']}, {machine['cores']} cores")
    parts += [f"cpufree {versions['cpufree']}"] if versions["cpufree"] != "unknown" else []
    if header["commit"]:
        parts.append(f"commit {header['commit'][:10]}{' (modified)' if header['modified'] else ''}")
    return " · ".join([*parts, header["date"][:10]])


def how_text(header: Header) -> str:
    """Return how it was measured in a line."""
    c = header["configuration"]
    what = f"{c['iterations']} iterations" if c["iterations"] else f"to rtol {c['rtol']:g}"
    what += " at most" if c["iterations"] and "rtol" in c else ""  # of CG: cut where it ends
    return f"{what}, {c['repeats']} repeats, order from seed {c['seed']}"
