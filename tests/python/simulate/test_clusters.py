"""Machine files of the simulator: what they hold, and what is refused with the field's name."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.machine.cluster_fields import FIELDS
from cpufree.machine.clusters import Cluster, load_cluster, names
from cpufree.machine.files import FOLDER
from cpufree.simulate.halo import coarse_shares
from cpufree.simulate.krylov import krylov
from cpufree.simulate.run import run

GOOD = json.loads((FOLDER / "gpu-tn-2017.json").read_text())


@pytest.mark.parametrize("name", names())
def test_each_machine_that_comes_along_can_be_read(name: str) -> None:
    cluster = load_cluster(name)
    assert all(cluster.fields[field].provenance for field in cluster.fields)


def test_every_constant_of_table_2_is_a_field_in_its_unit() -> None:
    c = load_cluster("gpu-tn-2017")
    assert c["gpu.launch"] == c["gpu.teardown"] == 1.5e-6
    assert c["network.bandwidth"] == 12.5e9
    assert c["network.link_latency"] == c["network.switch_latency"] == 1e-7
    assert (c["cpu.frequency"], c["gpu.frequency"]) == (4e9, 1e9)
    assert (c["cpu.l3.bytes"], c["gpu.l2.latency"]) == (16 * 2**20, 150)
    assert (c.count("gpu.units"), c.count("nic.entries"), c.topology) == (24, 16, "star")


def change(field: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["cluster"]["fields"][field].update(values)


def without(field: str, key: str | None = None) -> Callable[[dict[str, Any]], None]:
    def drop(content: dict[str, Any]) -> None:
        del (content["cluster"]["fields"] if key is None else content["cluster"]["fields"][field])[
            key or field
        ]

    return drop


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (without("gpu.launch"), "fields.gpu.launch: it is missing"),
        (without("gpu.launch", "unit"), "fields.gpu.launch.unit: it is missing"),
        (without("gpu.launch", "provenance"), "fields.gpu.launch.provenance: it is missing"),
        (change("gpu.launch", unit="GB/s"), "fields.gpu.launch.unit"),
        (change("gpu.launch", value=-1), "fields.gpu.launch.value: it is -1"),
        (change("network.bandwidth", value=0), "fields.network.bandwidth.value: it is 0"),
        (change("gpu.launch", value=float("nan")), "fields.gpu.launch.value"),
        (change("gpu.launch", value="1.5"), "fields.gpu.launch.value"),
        (change("nic.entries", value=1.5), "fields.nic.entries.value: it is 1.5"),
        (
            lambda content: content["cluster"]["fields"].update({"gpu.lunch": {}}),
            "fields.gpu.lunch",
        ),
        (lambda content: content["cluster"].update(topology="torus"), "topology"),
        (
            lambda content: content["cluster"].update(topology="fat_tree"),
            "fields.network.leaf_nodes",
        ),
        (lambda content: content.update(version=2), "version"),
        (lambda content: content.update(format="other"), "format"),
    ],
)
def test_a_bad_file_is_refused_with_the_field(
    spoil: Callable[[dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    content = copy.deepcopy(GOOD)
    spoil(content)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=words.replace(".", r"\.")):
        load_cluster(str(tmp_path / "m.json"))


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text((FOLDER / "h200.json").read_text()[:500])
    with pytest.raises(FileFormatError, match="cut short"):
        load_cluster(str(file))


def test_an_unknown_machine_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInputError, match="gpu-tn-2017"):
        load_cluster("gpu-tn-2018")


def test_an_unknown_field_cannot_be_changed() -> None:
    with pytest.raises(InvalidInputError, match=r"gpu\.lunch"):
        load_cluster("h200").with_values(gpu__lunch=1.0)


def test_all_fields_have_a_meaning() -> None:
    assert all(field.what and field.unit for field in FIELDS.values())


def test_another_baseline_wins_where_launches_are_slow() -> None:
    usual = load_cluster("h200")
    shares = coarse_shares(8e6, 56e6, 3, 8)

    def best(cluster: Cluster) -> str:
        seconds = {
            way: run(krylov(cluster, way, shares, "cg", 6).graph).per_round
            for way in ("hdn", "nccl", "gds")
        }
        return min(seconds, key=lambda way: seconds[way])

    assert best(usual) == "gds"
    assert best(usual.with_values(gpu__launch=2e-5)) == "hdn"
