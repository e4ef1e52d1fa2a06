"""Packs of runs, as a node of a cluster trains them, and what is refused before any is launched. Clusters: tests/cluster."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from command import Call
from lengthlab.errors import LabError
from lengthlab.launch.cluster import cluster_named
from lengthlab.launch.pack import Pack, packed, train_pack
from lengthlab.launch.queue import queue
from lengthlab.store.lease import Leases, Owner
from lengthlab.store.place import FolderPlace, carry_out
from lengthlab.training import train
from small_runs import counts, end_to_end_run, folder_of, identical, learned, weights

RUNS = [end_to_end_run(steps=10, seed=seed) for seed in (100, 101)]


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """Two runs that wait in a store."""
    (pack,) = packed(queue(RUNS, tmp_path / "store", "cpu"), str(tmp_path / "store"), number=1)
    return pack


def test_a_pack_comes_to_what_its_runs_come_to_alone(pack: Pack, tmp_path: Path) -> None:
    store, alone = Path(pack.store), tmp_path / "alone"
    assert train_pack(pack) == {}
    for run in RUNS:
        train(run, alone, "cpu")
        assert identical(weights(store, run), weights(alone, run))
        assert (counts(store, run), learned(store, run)) == (counts(alone, run), learned(alone, run))


def test_a_pack_is_its_own_runs_and_no_others(pack: Pack) -> None:
    assert train_pack(replace(pack, runs=pack.runs[:1])) == {}
    assert [folder_of(Path(pack.store), run).finished for run in RUNS] == [True, False]


def test_what_a_pack_had_before_it_was_started_again_is_taken_over_at_once(pack: Pack) -> None:
    place = FolderPlace(pack.store)
    gone = Leases(Owner("gone", family=pack.id), lambda: 0.0)
    carry_out(gone.beat(pack.runs, kept=pack.runs), place)
    for run in pack.runs:
        assert carry_out(gone.claim(run), place)
        assert carry_out(Leases(Owner("other"), lambda: 0.0).claim(run), place) is None
        assert carry_out(Leases(Owner("other", family="another"), lambda: 0.0).claim(run), place) is None
    assert train_pack(pack) == {}
    ends = [json.loads((Path(pack.store) / run / ".lease" / "1.end").read_bytes()) for run in pack.runs]
    assert [(end["how"], end.get("why")) for end in ends] == [("lost", None)] * 2


@pytest.mark.parametrize("hosts", [("here", "here"), ("one", "two", "three")])
def test_a_run_whose_processes_die_before_they_have_kept_anything_is_given_up(hosts: tuple[str, ...], pack: Pack) -> None:
    """Twice on one host, or on three: whatever starts packs again would do so for ever."""
    place = FolderPlace(pack.store)
    for host in hosts:
        gone = Leases(Owner(host, family=pack.id), lambda: 0.0)
        carry_out(gone.beat(), place)
        assert all(carry_out(gone.claim(run), place) for run in pack.runs)
    errors = train_pack(pack, "here")
    assert errors.keys() == set(pack.runs)
    assert all("before it had kept anything" in error for error in errors.values())


def test_that_a_checkpoint_is_kept_is_said_at_once(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease lasts minutes: who dies in the first of them shall not be taken for one whom the run has killed."""
    from lengthlab.launch import claims

    heard: list[list[str]] = []
    beat = claims.Leases.beat

    def listened(leases: Leases, runs: list[str], kept: list[str], **words: str) -> object:
        heard.append(list(kept))
        return beat(leases, runs, kept, **words)

    monkeypatch.setattr(claims.Leases, "beat", listened)
    monkeypatch.setattr("lengthlab.training.recorder.FIRST_CHECKPOINT_SECONDS", 0.0)
    train_pack(replace(pack, runs=pack.runs[:1]))
    assert [*pack.runs[:1]] in heard


def test_why_runs_of_a_pack_come_to_nothing_is_given_back(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = pack.runs
    (Path(pack.store) / first / "run.json").write_text("{}")

    def fail(state: object) -> float:
        raise ValueError("it always fails")

    monkeypatch.setattr("lengthlab.training.state.TrainState.advance", fail)
    errors = train_pack(pack)
    assert f"not of {first}: move it away" in errors[first]
    assert "it always fails" in errors[second]


def test_a_machine_that_is_not_fit_is_named(pack: Pack, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"node 7 does not see the runs in '.*elsewhere': --store has to be"):
        train_pack(replace(pack, store=str(tmp_path / "elsewhere")), "node 7")
    with pytest.raises(LabError, match=r"node 7 has lengthlab .*, not 0\.0\.1 as whoever launched"):
        train_pack(replace(pack, version="0.0.1"), "node 7")


@pytest.mark.parametrize(("kind", "library"), [("ray", "ray"), ("slurm", "submitit")])
def test_what_is_not_installed_is_named(
    kind: str, library: str, desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for words in (("launch", kind, "plan.toml"), ("train", "plan.toml", "--launch", kind)):
        call(*words, "--store", "fresh").refused(f"pip install 'lengthlab[{kind}]'")
    assert not Path("fresh").exists()


def test_other_launchers_are_refused(desk: Path, call: Call) -> None:
    with pytest.raises(LabError, match="launched by local, ray, slurm, not by 'kubernetes'"):
        cluster_named("kubernetes")
    call("train", "plan.toml", "--launch", "ray", "--queue").refused("--queue trains nothing")
    call("train", "plan.toml", "--launch", "ray", "--workers", 2).refused("--workers are of this machine")
    call("reproduce", "far", "--from", "published", "--launch", "ray").refused("--launch")


def test_launch_local_is_train(desk: Path, call: Call) -> None:
    assert call("launch", "local", "plan.toml", "--json").out == call("train", "plan.toml", "--json").out != ""
