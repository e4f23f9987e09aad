"""The scaling of Trotter et al. 2025 simulated, CG on up to 1024 GPUs; and beyond, to 16 384.

Constants of the machines are from published figures, and none from the scaling itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cpufree.machine.clusters import Cluster, load_cluster
from cpufree.simulate.halo import coarse_shares
from cpufree.simulate.krylov import Traffic, krylov
from cpufree.simulate.run import run
from cpufree.simulate.study import Finding

TRAFFIC = Traffic(entry=20.0, row=20.0, hidden=False)
"""As the paper counts: 20 (n + m) bytes for a product with n entries and m rows. Its pipelined CG
sums by MPI_Allreduce, which returns with the sum, and by NCCL in the stream of the product
(sections 3.3.1 and 3.3.2): no product runs beside."""
STYLES = {"hdn": "MPI", "nccl": "NCCL", "proxy": "NVSHMEM (IBRC)", "native": "NVSHMEM (IBGDA)"}
"""Way of communication -> what the paper calls it."""
TOLERANCE = 0.08
ROUNDS = 6
DOUBT = 2.0
"""Factor by which latencies and overheads of a projection may be off."""


@dataclass(frozen=True)
class Mesh:
    """A matrix of the paper as a coarse model."""

    name: str
    rows: float
    entries: float
    dimensions: int


POISSON = Mesh("poisson1d", 1_073_741_824, 3_221_225_470, 1)
HEART = Mesh("heart15", 874_424_445, 2 * 7_185_411_541 - 874_424_445, 3)
"""Table 1 of the paper has the entries of the lower triangle: only with all of them do the rates of
its table 3 give its 92 to 95 iterations."""


@dataclass(frozen=True)
class Experiment:
    """A matrix on a machine."""

    machine: str
    mesh: Mesh
    pes: tuple[int, ...]
    bandwidth: Mapping[str, tuple[float, float]]
    """By the ways that the paper measured there: what CG and pipelined CG reach from memory on the
    fewest GPUs, B/s of each (table 3)."""
    printed: float
    """Efficiency of the best solver on most GPUs, in the paper's text."""
    poll: Mapping[str, float] = field(default_factory=dict)
    """By the way: seconds until a running kernel sees a message, where the file's do not hold."""


RCCL = {"nccl": 23e-6}
"""An all-reduce by RCCL takes 2.3 to 3.0 times that of MPI on 32 GPUs of LUMI (section 4.2.2): so
long a step makes it 2.65 times."""
MN5, LUMI = (16, 32, 64, 128, 256), (64, 128, 256, 512, 1024)
EXPERIMENTS = (
    Experiment("marenostrum5-acc", POISSON, MN5, {
        "hdn": (1.61e12, 1.86e12), "nccl": (1.61e12, 1.86e12), "proxy": (1.37e12, 1.63e12)}, 0.76),
    Experiment("marenostrum5-acc", HEART, MN5, {
        "hdn": (1.97e12, 2.06e12), "nccl": (1.93e12, 2.07e12), "proxy": (1.50e12, 1.60e12)}, 0.76),
    Experiment("lumi-g", POISSON, LUMI, {
        "hdn": (1.25e12, 1.40e12), "nccl": (1.10e12, 1.33e12)}, 0.46, RCCL),
    Experiment("lumi-g", HEART, LUMI, {
        "hdn": (1.09e12, 1.14e12), "nccl": (1.02e12, 1.07e12)}, 0.46, RCCL),
)  # fmt: skip


def iteration(cluster: Cluster, mesh: Mesh, way: str, method: str, pes: int) -> float:
    """Return the seconds of an iteration."""
    shares = coarse_shares(mesh.rows, mesh.entries, mesh.dimensions, pes)
    return run(krylov(cluster, way, shares, method, ROUNDS, TRAFFIC).graph).per_round


@dataclass(frozen=True)
class Curve:
    """Seconds of an iteration by number of GPUs, and efficiency against the experiment's basis."""

    experiment: Experiment
    way: str
    method: str
    seconds: tuple[float, ...]
    efficiency: tuple[float, ...]


def cluster_of(experiment: Experiment, way: str, method: str) -> Cluster:
    """Return the machine with the bandwidth that such a solver reaches there.

    Where the paper has none of that way, that of the host-driven one.
    """
    rates = experiment.bandwidth.get(way, experiment.bandwidth["hdn"])
    rate = rates[0 if method == "cg" else 1]
    machine = load_cluster(experiment.machine).with_values(gpu__bandwidth=rate)
    poll = experiment.poll.get(way, machine["gpu.poll"])
    return machine.with_values(gpu__poll=poll)


def curves(experiment: Experiment, ways: Sequence[str] = tuple(STYLES)) -> list[Curve]:
    """Return all ways and methods; efficiency counts from CG with MPI on the fewest GPUs."""
    first, mesh = experiment.pes[0], experiment.mesh
    basis = first * iteration(cluster_of(experiment, "hdn", "cg"), mesh, "hdn", "cg", first)
    found = []
    for method in ("cg", "pipecg"):
        for way in ways:
            cluster = cluster_of(experiment, way, method)
            seconds = tuple(iteration(cluster, mesh, way, method, n) for n in experiment.pes)
            efficiency = tuple(
                basis / (pes * t) for pes, t in zip(experiment.pes, seconds, strict=True)
            )
            found.append(Curve(experiment, way, method, seconds, efficiency))
    return found


def best(found: Sequence[Curve]) -> Curve:
    """Return the curve that is fastest on most GPUs, of the styles that the paper measured."""
    there = [one for one in found if one.way in one.experiment.bandwidth]
    return min(there, key=lambda one: one.seconds[-1])


def crossover(found: Sequence[Curve], method: str = "cg") -> int | None:
    """Return with how many GPUs the persistent kernel begins to be fastest; None: with none."""
    of_method = {one.way: one for one in found if one.method == method}
    for k, pes in enumerate(found[0].experiment.pes):
        host = min(of_method[way].seconds[k] for way in ("hdn", "nccl"))
        if of_method["proxy"].seconds[k] < host:
            return pes
    return None


def check_scaling(experiments: Sequence[Experiment] = EXPERIMENTS) -> list[Finding]:
    """Return the paper's efficiencies with the simulator's. The text does not name the matrix."""
    found = []
    for one in experiments:
        fastest = best(curves(one, tuple(one.bandwidth)))
        what = (f"{one.mesh.name} on {one.pes[-1]} GPUs of {one.machine}: efficiency of "
                f"{fastest.method}, {STYLES[fastest.way]}")  # fmt: skip
        found.append(Finding("text", what, fastest.efficiency[-1], one.printed - TOLERANCE,
                             one.printed + TOLERANCE))  # fmt: skip
    return found


@dataclass(frozen=True)
class Projection:
    """Seconds of an iteration beyond what has been measured: expected, at best, at worst."""

    way: str
    pes: int
    seconds: float
    least: float
    most: float


def project(
    experiment: Experiment, pes: int = 16384, ways: Sequence[str] = tuple(STYLES)
) -> list[Projection]:
    """Return CG on N GPUs; the interval is that of all latencies halved and doubled."""
    found = []
    for way in ways:
        base = cluster_of(experiment, way, "cg")
        low, expected, high = (
            iteration(_slower(base, factor), experiment.mesh, way, "cg", pes)
            for factor in (1 / DOUBT, 1.0, DOUBT)
        )
        found.append(Projection(way, pes, expected, low, high))
    return found


def _slower(cluster: Cluster, factor: float) -> Cluster:
    from cpufree.machine.cluster_fields import FIELDS

    times = {
        name.replace(".", "__"): factor * cluster[name]
        for name in cluster.fields
        if FIELDS[name].unit == "s"
    }
    return cluster.with_values(**times)
