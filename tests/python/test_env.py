"""Environment variables: typed, validated, and unknown ones pointed out."""

from __future__ import annotations

import dataclasses
import re
import warnings
from pathlib import Path

import pytest

from cpufree.env import VARIABLES, Env, KernelCache, RankEnv, in_force, kernel_cache
from cpufree.errors import CpufreeWarning, InvalidInputError
from cpufree.launchers import first_node


def test_empty_environment_gives_the_defaults() -> None:
    assert Env.read({}) == Env("auto", None, None, None, "warning", "auto")


def test_values_are_read_with_their_types() -> None:
    env = Env.read(
        {
            "CPUFREE_ENGINE": "cpu_threads",
            "CPUFREE_PES": "8",
            "CPUFREE_BLOCKS": "4",
            "CPUFREE_WAIT_LIMIT": "2.5",
            "CPUFREE_LOG": "debug",
            "CPUFREE_GPUS": "0, 2-4",
            "CPUFREE_NODE_SIZE": "2",
        }
    )
    assert env == Env("cpu_threads", 8, 4, 2.5, "debug", (0, 2, 3, 4), 2)


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_PES", "3")
    assert Env.read().pes == 3


@pytest.mark.parametrize("name", VARIABLES)
def test_empty_value_counts_as_unset(name: str) -> None:
    assert Env.read({name: ""}) == Env()


@pytest.mark.parametrize(
    "name", ["CPUFREE_PES", "CPUFREE_BLOCKS", "CPUFREE_GPUS", "CPUFREE_NODE_SIZE"]
)
def test_auto_leaves_a_number_open(name: str) -> None:
    assert Env.read({name: "Auto"}) == Env()


def test_words_are_read_without_regard_to_case() -> None:
    assert Env.read({"CPUFREE_LOG": " Error "}).log == "error"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CPUFREE_ENGINE", "gpu"),
        ("CPUFREE_PES", "0"),
        ("CPUFREE_PES", "-1"),
        ("CPUFREE_PES", "2.0"),
        ("CPUFREE_PES", "²"),
        ("CPUFREE_PES", "9" * 5000),
        ("CPUFREE_BLOCKS", "many"),
        ("CPUFREE_WAIT_LIMIT", "0"),
        ("CPUFREE_WAIT_LIMIT", "-1"),
        ("CPUFREE_WAIT_LIMIT", "nan"),
        ("CPUFREE_WAIT_LIMIT", "inf"),
        ("CPUFREE_WAIT_LIMIT", "10s"),
        ("CPUFREE_NODE_SIZE", "0"),
        ("CPUFREE_LOG", "loud"),
        ("CPUFREE_GPUS", "two"),
        ("CPUFREE_GPUS", "0,"),
        ("CPUFREE_GPUS", "3-1"),
    ],
)
def test_bad_value_is_refused_with_name_value_and_choices(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Env.read({name: value})
    assert f"{name}={value!r}" in str(caught.value)
    assert VARIABLES[name] in str(caught.value)


def test_unknown_name_gives_a_warning_with_the_one_meant() -> None:
    with pytest.warns(CpufreeWarning, match=re.escape("did you mean CPUFREE_ENGINE?")):
        Env.read({"CPUFREE_ENGIN": "cpu_threads"})


def test_unknown_name_gives_a_warning_with_all_valid_names() -> None:
    with pytest.warns(CpufreeWarning) as caught:
        Env.read({"CPUFREE_XYZZY": "1"})
    assert all(name in str(caught[0].message) for name in VARIABLES)


@pytest.mark.parametrize("name", ["HOME", "CPUFREE_DATA", "MYCPUFREE_X"])
def test_names_of_others_give_no_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Env.read({name: "1"})


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Env().pes = 3  # type: ignore[misc]


OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "8",
    "PMIX_NAMESPACE": "4711",
}
TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "16",
    "LOCAL_RANK": "1",
    "MASTER_ADDR": "node7",
    "MASTER_PORT": "29500",
}
SLURM = {
    "SLURM_PROCID": "2",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_LOCALID": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_ID": "99",
    "SLURM_STEP_NODELIST": "gpu[03-04,7]",
}


def test_a_process_without_launcher_is_no_rank() -> None:
    assert RankEnv.read({}) is None


@pytest.mark.parametrize(
    ("values", "rank", "ranks", "local", "launcher", "host"),
    [
        (OPEN_MPI, 3, 8, 3, "Open MPI", "127.0.0.1"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, 3, 8, 3, "Open MPI", ""),
        (TORCHRUN, 5, 16, 1, "torchrun", "node7"),
        ({**TORCHRUN, "LOCAL_WORLD_SIZE": "16"}, 5, 16, 1, "torchrun", "127.0.0.1"),
        (SLURM, 2, 4, 0, "Slurm", "gpu03"),
        ({**SLURM, "SLURM_STEP_NODELIST": "gpu03"}, 2, 4, 0, "Slurm", "127.0.0.1"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, 1, 2, None, "PMI", ""),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}, 1, 2, None, "PMI",
         "127.0.0.1"),
        ({"CPUFREE_RANK": "0", "CPUFREE_RANKS": "2"}, 0, 2, None, "cpufree", ""),
        ({"PMIX_RANK": "1", "CPUFREE_RANKS": "2"}, 1, 2, None, "cpufree", ""),
    ],
)  # fmt: skip
def test_launchers_are_known_by_their_variables(
    values: dict[str, str], rank: int, ranks: int, local: int | None, launcher: str, host: str
) -> None:
    found = RankEnv.read(values)
    assert found is not None
    assert (found.rank, found.ranks, found.local_rank) == (rank, ranks, local)
    assert (found.launcher, found.host) == (launcher, host)


def test_the_innermost_launcher_counts() -> None:
    found = RankEnv.read({**SLURM, **OPEN_MPI, **TORCHRUN})
    assert found is not None
    assert found.launcher == "torchrun"


@pytest.mark.parametrize("step", ["", "4294967291", "batch"])
def test_a_batch_script_of_slurm_is_no_rank(step: str) -> None:
    assert RankEnv.read({**SLURM, "SLURM_STEP_ID": step}) is None


@pytest.mark.parametrize("rank", ["0", "1", "3"])
def test_mpirun_of_mpich_in_a_job_of_slurm_is_not_taken_for_slurm(rank: str) -> None:
    # Its helpers, one on each of two nodes, were started by srun: the ranks have their numbers.
    helper = {**SLURM, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    own = {"PMI_RANK": rank, "PMI_SIZE": "4", "MPI_LOCALRANKID": "0"}
    found = RankEnv.read({**helper, **own})
    assert found is not None
    assert (found.launcher, found.rank, found.ranks) == ("PMI", int(rank), 4)


def test_mpirun_of_mpich_is_known_where_numbers_are_those_of_slurm_by_chance() -> None:
    own = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0"}
    found = RankEnv.read({**SLURM, **own})
    assert found is not None
    assert found.launcher == "PMI"


def test_srun_with_the_pmi_of_slurm_is_slurm() -> None:
    found = RankEnv.read({**SLURM, "PMI_RANK": "2", "PMI_SIZE": "4"})
    assert found is not None
    assert found.launcher == "Slurm"


def test_open_mpi_that_says_nothing_of_its_job_gives_no_name() -> None:
    nameless = {key: value for key, value in OPEN_MPI.items() if key != "PMIX_NAMESPACE"}
    found = RankEnv.read(nameless)
    assert found is not None
    assert found.job == ""


def test_ranks_of_one_job_have_one_name_and_other_jobs_have_others() -> None:
    first, second = (RankEnv.read({**SLURM, "SLURM_PROCID": k}) for k in "01")
    other = RankEnv.read({**SLURM, "SLURM_STEP_ID": "1"})
    assert first is not None
    assert second is not None
    assert other is not None
    assert first.job == second.job != other.job


def test_a_rank_beyond_the_number_of_ranks_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="rank 8 of 8"):
        RankEnv.read({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "8"})


def test_a_rank_that_is_no_number_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidInputError, match="SLURM_PROCID='two'"):
        RankEnv.read({**SLURM, "SLURM_PROCID": "two"})


@pytest.mark.parametrize(
    ("rank", "number"),
    [
        ("CPUFREE_RANK", "CPUFREE_RANKS"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("PMIX_RANK", "CPUFREE_RANKS"),
    ],
)
def test_a_rank_of_an_unknown_number_of_ranks_is_refused(rank: str, number: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{rank} .* rank 0, .* set {number} "):
        RankEnv.read({rank: "0", number: ""})


def test_a_rank_of_pmix_that_another_launcher_counts_is_taken() -> None:
    found = RankEnv.read({**SLURM, "PMIX_RANK": "2"})
    assert found is not None
    assert (found.launcher, found.ranks) == ("Slurm", 4)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node1", "node1"),
        ("node1,node2", "node1"),
        ("gpu[03-07,9],login", "gpu03"),
        ("gpu[5,7]", "gpu5"),
        ("rack[1-2]-a,other", "rack1-a"),
        ("", ""),
    ],
)
def test_the_first_node_of_a_list_of_slurm(nodes: str, first: str) -> None:
    assert first_node(nodes) == first


def test_variables_in_force_are_shown_without_the_secret_of_a_job() -> None:
    given = {"CPUFREE_PES": "2", "CPUFREE_SECRET": "x" * 64, "CPUFREE_LOG": " ", "HOME": "/"}
    assert in_force(given) == {"CPUFREE_PES": "2"}


@pytest.mark.parametrize(
    ("said", "folder"),
    [
        ({}, "/home/me/.cache/cpufree/kernels"),
        ({"XDG_CACHE_HOME": "/fast"}, "/fast/cpufree/kernels"),
        ({"XDG_CACHE_HOME": "not/absolute"}, "/home/me/.cache/cpufree/kernels"),
        ({"CPUFREE_KERNEL_CACHE": "/mine", "XDG_CACHE_HOME": "/fast"}, "/mine"),
        ({"CPUFREE_KERNEL_CACHE": "~/mine"}, "/home/me/mine"),
    ],
)
def test_folder_of_compiled_kernels(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str], folder: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert kernel_cache(said) == KernelCache(True, folder)


def test_compiled_kernels_may_be_kept_nowhere() -> None:
    assert not kernel_cache({"CPUFREE_KERNEL_CACHE": " Off "}).kept


def test_user_without_home_and_password_entry_has_no_folder_of_compiled_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    found = kernel_cache({})
    assert found.kept and not found.folder and "home directory" in found.why_none


def test_relative_folder_of_compiled_kernels_is_one_of_the_working_directory() -> None:
    found = kernel_cache({"CPUFREE_KERNEL_CACHE": "here"})
    assert found == KernelCache(True, str(Path.cwd() / "here"))
