"""What the paper says, and the runs that are made of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lengthlab.errors import LabError
from lengthlab.experiments.dat import DAT
from lengthlab.experiments.dat.arms import ARMS, HYBRIDS, LENGTHS, NOTATION, TASKS, arm_of
from lengthlab.experiments.dat.claims import CLAIMS
from lengthlab.experiments.dat.profile import PROFILES, Profile, Recipe
from lengthlab.experiments.dat.readings import READINGS
from lengthlab.experiments.study import Arm
from lengthlab.models import MODELS
from lengthlab.registry import registered
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import end_to_end
from lengthlab.store.phases import EPOCH
from lengthlab.switch import find
from lengthlab.tasks import Task

# The paper's Appendix B, as its text has it.
TEXT = """
Transformer	1.00	1.00	1.00	1.00	1.00	1.00	1.00	1.00	0.99	0.99	0.90	0.80
LSTM	1.00	0.98	0.95	0.89	0.83	0.76	0.70	0.64	0.59	0.53	0.37	0.28
LSTM ∘ Attn	1.00	1.00	1.00	1.00	1.00	0.99	0.99	0.99	0.99	0.99	0.90	0.76
Attn ∘ LSTM	1.00	1.00	1.00	1.00	1.00	1.00	0.99	0.99	0.99	0.99	0.96	0.89
Hybrid Block	1.00	1.00	1.00	1.00	1.00	1.00	1.00	1.00	0.99	0.99	0.98	0.92
LSTM ∘ Attn ∘ LSTM	1.00	1.00	1.00	1.00	1.00	1.00	1.00	0.99	0.99	0.99	0.97	0.90
LSTM + Attn	1.00	1.00	1.00	1.00	1.00	1.00	1.00	1.00	0.99	0.99	0.92	0.82

Transformer	1.00	1.00	1.00	0.99	0.98	0.51	0.11	0.10	0.10	0.10	0.10	0.10
LSTM	1.00	1.00	1.00	1.00	1.00	1.00	1.00	1.00	1.00	1.00	1.00	1.00
LSTM ∘ Attn	1.00	1.00	1.00	1.00	1.00	0.20	0.10	0.10	0.10	0.10	0.10	0.10
Attn ∘ LSTM	1.00	1.00	1.00	1.00	1.00	0.63	0.10	0.10	0.10	0.10	0.10	0.10
Hybrid Block	1.00	1.00	1.00	1.00	1.00	0.45	0.22	0.13	0.10	0.10	0.10	0.10
LSTM ∘ Attn ∘ LSTM	1.00	1.00	1.00	1.00	1.00	0.73	0.16	0.08	0.09	0.10	0.10	0.10
LSTM + Attn	1.00	1.00	1.00	1.00	0.99	0.11	0.11	0.10	0.10	0.10	0.10	0.10
"""
NAMES = {notation: name for name, notation in NOTATION.items()}


@pytest.mark.parametrize(("part", "place"), [("table1", 0), ("table2", 1)])
def test_the_tables_are_those_of_the_text(part: str, place: int) -> None:
    lines = [line.split("\t") for line in TEXT.strip().split("\n\n")[place].splitlines()]
    assert [NAMES[name] for name, *_ in lines] == list(NOTATION)
    for name, *numbers in lines:
        arm = arm_of(part, NAMES[name])
        assert [DAT.says(arm, "all", length) for length in LENGTHS] == [float(number) for number in numbers]


def test_there_are_26_cells() -> None:
    count = Counter((arm.name, arm.task, arm.training) for arm in ARMS)
    assert count == {
        ("table1", "recall", "end-to-end"): 7,
        ("table2", "modulo", "end-to-end"): 7,
        ("figure1", "modulo-recall", "end-to-end"): 7,
        ("figure1", "modulo-recall", "delayed"): 5,
    }
    assert len(set(ARMS)) == len(ARMS) == 26
    assert list(LENGTHS) == [*range(5, 51, 5), 75, 100]
    assert set(NOTATION) == set(MODELS)
    assert set(TASKS.values()) <= set(registered(Task))
    assert set(HYBRIDS) == set(MODELS) - {"transformer", "lstm"}


def test_the_text_has_no_numbers_of_the_figure_and_of_nothing_else() -> None:
    for arm in ARMS:
        for length in LENGTHS:
            assert (DAT.says(arm, "all", length) is None) == (arm.name == "figure1")


def test_every_check_of_every_claim_is_of_an_arm_of_its_section() -> None:
    for claim in CLAIMS:
        assert claim.checks
        for check in claim.checks:
            assert check.arm in DAT.section(claim.section).arms
            assert check.length in LENGTHS


def runs_of(section: str, size: str = "short", seeds: tuple[int, ...] = (0,)) -> list[tuple[Arm, Run]]:
    return DAT.runs(size, seeds, [DAT.section(section)])


def runs_of_cells(size: str) -> list[tuple[Arm, Run]]:
    return [pair for section in ("table1", "table2", "figure1") for pair in runs_of(section, size)]


@pytest.mark.parametrize("size", PROFILES)
def test_every_cell_is_the_run_it_is_named_after(size: str) -> None:
    found = runs_of_cells(size)
    assert [arm for arm, _ in found] == list(ARMS)
    assert len({run.id for _, run in found}) == 26
    for arm, run in found:
        assert (arm.task, arm.model, arm.training) == (run.task.name, run.model.name, run.schedule.name)
        assert (run.lengths, run.evaluate) == ((1, 25), LENGTHS)
        assert getattr(run.model, "width", None) == 256
        assert bool(run.schedule.phases[0].off) == (arm.training == "delayed")


@pytest.mark.parametrize("name", PROFILES)
def test_without_any_of_its_recipes_a_profile_would_train_something_else(name: str) -> None:
    profile = PROFILES[name]
    readings = [Arm("readings", reading.model, "modulo-recall", "delayed") for reading in READINGS]
    for left_out in profile.recipes:
        less = replace(profile, recipes={key: recipe for key, recipe in profile.recipes.items() if key != left_out})
        assert any(recipe_of(less, arm) != profile.recipe(arm) for arm in (*ARMS, *readings)), left_out


def recipe_of(profile: Profile, arm: Arm) -> Recipe | None:
    try:
        return profile.recipe(arm)
    except LabError:
        return None


def test_the_papers_profile_is_as_long_as_the_paper_says() -> None:
    for arm, run in runs_of_cells("paper"):
        epochs = [phase.steps_at(run.batch) * run.batch / EPOCH for phase in run.schedule.phases]
        rates = [phase.rates["rest"] for phase in run.schedule.phases]
        if arm.training == "delayed":
            assert (epochs[:2], rates) == ([1500, 500], [1e-4, 1e-4, 1e-5])
        else:
            assert (epochs[:1], rates) == ([500], [1e-4, 1e-5])


def test_seeds_and_sections_are_chosen() -> None:
    chosen = runs_of("table2", seeds=(3, 5))
    assert [(arm.name, run.seed) for arm, run in chosen] == [("table2", 3)] * 7 + [("table2", 5)] * 7
    with pytest.raises(LabError, match="no part 'table3'; did you mean 'table"):
        DAT.section("table3")


def test_the_recipe_that_names_most_of_a_cell_is_its_own() -> None:
    recipes = {
        words: Recipe(end_to_end(steps), 4)
        for steps, words in enumerate(
            [("end-to-end",), ("lstm", "end-to-end"), ("table2", "end-to-end"), ("table2", "lstm", "end-to-end")], start=1
        )
    }
    profile = Profile("mine", recipes)
    steps = {
        (part, model): profile.recipe(arm_of(part, model)).schedule.phases[0].length
        for part in ("table1", "table2")
        for model in ("lstm", "sandwich")
    }
    assert steps == {("table1", "sandwich"): 1, ("table1", "lstm"): 2, ("table2", "sandwich"): 3, ("table2", "lstm"): 4}


def test_a_profile_without_a_recipe_or_with_a_wrong_one_is_refused() -> None:
    arm = arm_of("figure1", "sandwich", "delayed")
    with pytest.raises(LabError, match="no recipe for sandwich, delayed of figure1"):
        Profile("mine", {("end-to-end",): Recipe(end_to_end(1), 4)}).recipe(arm)
    with pytest.raises(LabError, match="trains sandwich, delayed of figure1 end-to-end"):
        Profile("mine", {("figure1",): Recipe(end_to_end(1), 4)}).recipe(arm)


def test_readings_are_fourteen_under_one_recipe() -> None:
    study = runs_of("readings")
    assert len({run.id for _, run in study}) == len({arm for arm, _ in study}) == len(READINGS) == 14
    recipes = {(run.batch, *((phase.length, phase.lr) for phase in run.schedule.phases)) for _, run in study}
    assert len(recipes) == 1


def test_a_reading_is_what_its_name_says() -> None:
    for reading, (arm, run) in zip(READINGS, runs_of("readings"), strict=True):
        assert arm == reading.arm
        first, *others = run.schedule.phases
        assert first.off == {"part": ("attention",), "sublayers": ("attend", "mlp"), "function": ("attend",)}[reading.covers]
        assert first.asks == {"modulo": ("modulo",), "both": ()}[reading.asks]
        assert not any(phase.off for phase in others)
        network = run.network()
        blocks = [name for name, _ in network.named_modules() if name.endswith("lstm")]
        assert len(blocks) == (4 if reading.lstms == "each block" else 1)
        off = find(network, *first.off)
        blocks_off = 4 if reading.covers != "part" or reading.lstms == "each block" else 1
        assert len(off) == blocks_off * len(first.off)


def test_the_two_readings_of_the_block_have_the_same_attention() -> None:
    study = {arm.model: run.network() for arm, run in runs_of("readings")}
    sizes = [
        sum(p.numel() for site in find(study[name], "attention") for p in site.module.parameters())
        for name in ("hybrid-block", "hybrid-block-lstm-in-each")
    ]
    assert sizes[0] == sizes[1]
