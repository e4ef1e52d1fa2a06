"""Studies of long memory, recurrences and hard states: every arm is what its name says, and learns at a small size."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import isfinite
from pathlib import Path

import pytest
from torch import Generator

from command import Call
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.evaluation.samples import USUAL
from lengthlab.experiments import Arm, Size, Study, find_study, hard_states, long_memory, memory, passkey, recurrences
from lengthlab.experiments.memory import Recipe
from lengthlab.models import GatedDeltanet, Part
from lengthlab.registry import registered
from lengthlab.report.evidence import Evidence
from lengthlab.report.markdown import markdown
from lengthlab.report.results import gather
from lengthlab.report.study_page import study_page
from lengthlab.spec.run import Run
from lengthlab.spec.slips import Slips
from lengthlab.store.rows import ALL, Row, read_rows
from lengthlab.tasks import IGNORE
from lengthlab.training.state import TrainState
from small_runs import CPU

NAMES = ("recurrences", "hard-states", "passkey", "needles", "variable-tracking", "long-memory")
STUDIES = tuple(map(find_study, NAMES))
SIZES = [(study, size) for study in STUDIES for size in study.sizes]
every_size = pytest.mark.parametrize(("study", "size"), SIZES, ids=[f"{study.name}, {size.name}" for study, size in SIZES])
TINY = Recipe(8, heads=2, chunk=4, chunks=2, batch=2, steps=5)


def some(study: Study, size: Size) -> list[tuple[Arm, Size]]:
    """Arms of a size with where they are measured; of very many, some."""
    arms = [(arm, own) for arm in study.arms if (own := study.size_of(arm, size))]
    return arms[:: 1 + len(arms) // 15]


@every_size
def test_every_arm_is_the_run_it_is_named_after(study: Study, size: Size) -> None:
    ids = set()
    for arm, own in some(study, size):
        run = study.run(arm, size.name)
        ids.add(run.id)
        assert (arm.model, arm.task, arm.training) == (run.model.name, run.task.name, run.schedule.name)
        assert run.lengths == own.trained
        run.task.check_length(own.lengths[-1])
        assert own.lengths[-1] >= 4 * own.trained[1]
        assert Run.from_json(run.to_json()) == run
    assert len(ids) == len({(arm.name.partition(", far")[0], arm.training) for arm, _ in some(study, size)})


@pytest.mark.parametrize("name", ["needles", "variable-tracking"])
def test_what_grows_with_the_square_is_measured_less_far(name: str) -> None:
    study = find_study(name)
    size = study.size("gpu")
    ends = {arm.name: own.lengths[-1] for arm in study.arms if (own := study.size_of(arm, size))}
    attention = {arm: ends.pop(arm) for arm in ("attention, rope", "attention, log-n")}
    assert set(attention.values()) == {16_384}
    assert ends.pop("lstm + hsa, unseen", 32_768) == 32_768
    assert set(ends.values()) == {131_072}


def test_all_recurrences_are_compared_and_one_of_them_both_ways() -> None:
    parts = {type(memory.recurrence_named(name)) for name in memory.RECURRENCES}
    assert len(memory.RECURRENCES) == len(parts) + 1 == 10
    known = {kind for name, kind in registered(Part).items() if name in memory.RECURRENCES}
    assert parts == known
    assert memory.recurrence_named("negative gated-deltanet") == GatedDeltanet(negative_eigenvalues=True)


def test_every_recurrence_is_a_hybrid_with_every_state_both_ways() -> None:
    study = recurrences.RECURRENCES_STUDY
    hybrids = {arm for name in ("hybrids", "group-hybrids", "other-hybrids") for arm in study.section(name).arms}
    states = {asked for asked in recurrences.TASKS if asked != "recall"}  # which every hybrid is asked as well
    ways = ("end-to-end", "delayed")
    assert hybrids == {recurrences.hybrid_arm(*it) for it in product(memory.RECURRENCES, states, ways)}
    runs = {arm: recurrences.run(arm, "gpu") for arm in hybrids if arm.name.startswith("lstm, ")}
    assert all(len(run.task.questions) == 2 and "recall" in run.task.questions for run in runs.values())
    parity = study.section("parity-hybrids")
    assert len(parity.arms) == 8
    assert not parity.usual


def test_rates_are_of_the_grid_and_pilots_are_on_no_published_seed() -> None:
    assert {scale.rate for scale in recurrences.SCALES.values()} <= set(recurrences.GRID)
    found = recurrences.pilots("cpu")
    assert len({run.id for run in found.values()}) == 30
    assert {run.seed for run in found.values()} == {100}
    assert all(run.schedule.phases[0].lr == rate for (_, rate), run in found.items())


def test_what_is_slowed_is_what_the_way_says() -> None:
    def rates(way: str) -> dict[str, object]:
        return dict(hard_states.run(hard_states.state_arm("S4", way), "gpu").schedule.phases[2].rates)

    assert rates("open") == rates("looking back") == {"rest": 6e-4}
    assert rates("slowed") == {"attention": 6e-4, "rest": pytest.approx(3e-5)}
    assert rates("held") == rates(hard_states.KEPT) == rates(hard_states.DENSE) == {"attention": 6e-4, "rest": 0.0}
    assert rates("recurrence slowed") == rates("silent") == {"rest": 6e-4, "lstm": pytest.approx(3e-5)}
    assert rates("recurrence held") == {"rest": 6e-4, "lstm": 0.0}
    assert rates("watched") == {"rest": 6e-4}
    watched = hard_states.run(hard_states.state_arm("S4", "watched"), "gpu").schedule.phases[2]
    assert watched.slips == Slips({"lstm": 0.05}, "product", times=4)
    assert watched.rates_if(slipped=True) == rates("recurrence slowed") == rates("dense")


def test_held_and_looking_back_are_changed_one_at_a_time_and_end_to_end_has_as_many_steps() -> None:
    one, _, back_alone, _ = runs = [hard_states.run(arm, "cpu") for arm in hard_states.S4]
    always = hard_states.run(hard_states.END_TO_END, "cpu")
    held = [replace(run, schedule=one.schedule) for run in runs]
    back = [replace(run, model=one.model) for run in runs]
    assert [run == one for run in held] == [True, True, False, False]
    assert [run == one for run in back] == [True, False, True, False]
    assert always.model == back_alone.model
    steps = {sum(phase.steps_at(run.batch) for phase in run.schedule.phases) for run in (*runs, always)}
    assert len(steps) == 1
    assert not any(phase.off for phase in always.schedule.phases)


def test_what_is_held_still_does_not_move_once_attention_is_open() -> None:
    run = hard_states.run(hard_states.state_arm("S3", hard_states.KEPT), "cpu")
    _, first, joint, last = run.schedule.phases
    short = replace(run.schedule, phases=(replace(first, length=2), replace(joint, length=2), replace(last, length=1)))
    state = TrainState(replace(run, schedule=short, batch=4), CPU)
    for _ in range(2):
        state.advance()
    before = {name: weight.clone() for name, weight in state.network.state_dict().items()}
    for _ in range(3):
        state.advance()
    moved = {name for name, weight in state.network.state_dict().items() if not weight.equal(before[name])}
    assert moved == {name for name in moved if ".attention." in name}
    assert moved == {name for name, weight in state.network.named_parameters() if ".attention." in name}


def test_a_dense_first_phase_asks_at_every_token_and_the_next_ones_do_not() -> None:
    run = hard_states.run(hard_states.state_arm("S3", "dense"), "cpu")
    alone, settling, opened, _ = run.schedule.phases
    assert replace(settling, length=alone.length, lr=alone.lr) == alone
    assert (alone.asks, alone.mixture, opened.mixture) == (("group-recall/product", "running-product/product"), (), (1.0, 0.0))
    asked = [
        {question: (batch.target[question] != IGNORE).sum(dim=1).tolist() for question in run.task.questions}
        for batch in (run.task_in(phase).sample(4, (5, 5), Generator().manual_seed(0)) for phase in (alone, opened))
    ]
    assert sorted(asked[0]["running-product/product"]) == [0, 0, 11, 11]
    assert asked[1] == {"group-recall/product": [1] * 4, "group-recall/recall": [1] * 4, "running-product/product": [0] * 4}
    assert run.task.words == hard_states.run(hard_states.state_arm("S3", "open"), "cpu").task.words


def test_the_bars_are_those_that_were_set() -> None:
    bars = {
        (check.arm.name, check.length): check.bound
        for study in (hard_states.HARD_STATES, passkey.PASSKEY, long_memory.LONG_MEMORY)
        for claim in study.claims
        for check in claim.checks
        if check.sign == "≥" and claim.size == "gpu"
    }
    kept, dense = hard_states.KEPT, hard_states.DENSE
    assert bars == {
        **{(f"S3, {way}", 1000): 0.99 for way in ("open", kept)},
        **{(f"S4, {way}", 100): 0.95 for way in ("open", kept)},
        **{(f"S4, {way}", 1000): 0.90 for way in ("open", kept)},
        **{(f"Z60, {way}", 1000): 0.95 for way in ("open", kept)},
        **{(f"A5, {way}", 50): 0.95 for way in ("open", dense)},
        **{(f"A5, {way}", 1000): 0.90 for way in ("open", dense)},
        (f"modulo 10, {kept}", 1000): 0.97,
        **{
            (f"lstm + hsa{way}", n): 0.99
            for way in ("", ", overlap", ", overlap, longer")
            for n in (1024, 4096, 65_536, 1_048_576, 4_194_304)
        },
        ("hsa", 100_000): 0.99,
    }


@every_size
def test_its_page_has_every_part_from_made_up_rows(study: Study, size: Size) -> None:
    rows = [
        Row(
            *(length, ALL, 18, 20 if length > 20_000 else 1000),
            **{"experiment": study.name, "arm": arm.name, "size": size.name, "model": arm.model, "task": arm.task},
            **{"training": arm.training, "seed": 0, "run": f"{number:011x}0"},  # type: ignore[arg-type]
        )
        for number, arm in enumerate(study.arms)
        if (own := study.size_of(arm, size))
        for length in own.lengths
    ]
    text = markdown(study_page(gather(study, size, study.sections_at(size), Evidence(tuple(rows)))))
    assert all(f"## {section.title}" in text for section in study.sections_at(size))
    assert "| missing |" not in text
    assert "Left out" not in text


SMALL_ARMS = [
    *((name, arm) for name in NAMES[2:4] for arm in ("lstm + hsa", "mamba2 + hsa", "attention, log-n", "lstm")),
    *(("passkey", arm) for arm in ("negative gated-deltanet", "lstm + hsa, overlap, longer, farther")),
    ("variable-tracking", "attention, rope"),
]


@pytest.mark.parametrize(("name", "arm"), SMALL_ARMS, ids=[", ".join(each) for each in SMALL_ARMS])
def test_an_arm_learns_and_is_measured_beyond_its_range(name: str, arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = find_study(name)
    monkeypatch.setitem(study.run.__globals__["RECIPES"], "gpu", TINY)  # type: ignore[attr-defined]
    monkeypatch.setattr(passkey, "OVERLAP", 2)  # chunks of TINY are small
    run = study.run(next(each for each in study.arms if each.name == arm), "gpu")
    state = TrainState(replace(run, lengths=(60, 80), batch=2), CPU)
    assert isfinite(state.advance())
    assert accuracy(state.network, run.task, [200], samples=2)[-1].total == 2


@pytest.mark.parametrize("training", ["delayed", "end-to-end"])
@pytest.mark.parametrize("model", ["hsa", "attention"])
def test_state_and_memory_in_one_model_learn(model: str, training: str) -> None:
    run = long_memory.run(long_memory.pairs_arm(model, training), "cpu")
    *before, crowded, last = (phase.distractors for phase in run.schedule.phases)
    assert not any((*before, last))
    assert (crowded > 0) == (model == "hsa")  # only a memory of chunks holds other samples
    state = TrainState(replace(run, batch=crowded + 1), CPU)  # others are those of the same batch
    assert isfinite(state.advance())
    assert {count.total for count in accuracy(state.network, run.task, [160], samples=2)} == {2}


def test_the_farthest_passkey_is_looked_for_once_by_the_model_that_need_not_walk() -> None:
    size = passkey.PASSKEY.size("gpu")
    (arm,) = passkey.PASSKEY.section("farthest").arms
    own = passkey.PASSKEY.size_of(arm, size)
    assert own is not None
    assert (own.lengths, USUAL.of(own.lengths[0])) == ((67_108_864,), 1)
    assert passkey.run(arm, "gpu") == passkey.run(passkey.MAMBA_WHOLE, "gpu")
    assert not any(67_108_864 in each.lengths for each in passkey.PASSKEY.section("farther").sizes)


def test_passkey_is_trained_measured_farther_and_judged(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = replace(passkey.GPU, name="tiny", gpu=False, trained=(20, 30), lengths=(30, 60)), (120,)
    arm = passkey.MEMORY[0]
    again = replace(arm, name=f"{arm.name}, farther")
    sections = (
        replace(passkey.PASSKEY.sections[0], arms=(arm,), sizes=(near,)),
        replace(passkey.PASSKEY.section("farther"), arms=(again,), sizes=(replace(near, lengths=far),)),
    )

    def tiny_run(asked: Arm, size: str) -> Run:
        return TINY.run(asked.name.removesuffix(", farther"), passkey.run(arm, "cpu").task, near.trained)

    study = Study("tiny", "Tiny", "?", tiny_run, (near,), sections=sections)
    monkeypatch.setattr("lengthlab.experiments.find_study", lambda name: study)
    words = ("reproduce", "tiny", "--device", "cpu", "--store", tmp_path / "runs")
    assert "1 runs, 0 of them" in call(*words, "--part", "memory", "--part", "farther", "--out", tmp_path / "out").err
    rows = read_rows(tmp_path / "out" / "results.jsonl")
    assert {(row.arm, row.length) for row in rows} == {(arm.name, 30), (arm.name, 60), (again.name, 120)}
