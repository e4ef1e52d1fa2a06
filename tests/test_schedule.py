"""A schedule is a row of phases: how long, how fast, what is off, what is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthlab.errors import LabError
from lengthlab.registry import registered
from lengthlab.spec.rate import Linear, WarmUp
from lengthlab.spec.schedule import Covers, Epochs, Mastered, Phase, Schedule, delayed, end_to_end, epochs

quick = settings(max_examples=50)


def test_end_to_end_is_one_phase_with_everything_on_and_asked() -> None:
    assert end_to_end(5_000) == Schedule("end-to-end", (Phase(5_000, lr=1e-4, off=(), asks=()),))


def test_end_to_end_ends_at_a_tenth_of_its_learning_rate() -> None:
    first, last = end_to_end(5_000, last=500).phases
    assert (first.length, last.length) == (5_000, 500)
    assert first.rates == {"rest": 1e-4}
    assert last.rates == pytest.approx({"rest": 1e-5})
    assert last.off == last.asks == ()


def test_delayed_switches_attention_off_and_asks_modulo_at_first() -> None:
    first, joint = delayed(2_000, joint=16_000).resolved(["modulo"]).phases
    assert first == Phase(2_000, lr=1e-4, off=("attention",), asks=("modulo",))
    assert joint == Phase(16_000, lr=1e-4, off=(), asks=())


def test_after_its_first_phase_delayed_is_end_to_end() -> None:
    options = {"joint": 30, "last": 7, "lr": {"rest": 1e-3, "attention": 1e-2}, "last_lr": 1e-6}
    assert delayed(10, **options).phases[1:] == end_to_end(**options).phases


def test_the_joint_phase_is_the_papers_unless_given_and_a_delay_ends_with_what_it_asks() -> None:
    assert [phase.length for phase in end_to_end().phases] == [Epochs(500)]
    assert [phase.length for phase in delayed().resolved(["modulo"]).phases] == [Mastered("modulo"), Epochs(500)]
    assert delayed(asks=("parity", "modulo")).phases[0].length == Mastered("parity")
    with pytest.raises(LabError, match="say how long"):
        delayed(asks=())
    assert [phase.rates for phase in delayed(last=5).phases] == [
        {"rest": 1e-4},
        {"rest": 1e-4},
        pytest.approx({"rest": 1e-5}),
    ]


def test_every_learning_rate_can_be_given() -> None:
    phases = delayed(1, joint=2, last=3, lr=0.2, first_lr=0.1, last_lr=0.3).phases
    assert [phase.lr for phase in phases] == [0.1, 0.2, 0.3]


def test_a_learning_rate_of_zero_is_a_learning_rate() -> None:
    assert [phase.lr for phase in delayed(1, joint=2, last=3, first_lr=0.0, last_lr=0.0).phases] == [0.0, 1e-4, 0.0]


def test_the_last_learning_rate_is_a_tenth_by_part_too() -> None:
    last = end_to_end(10, last=5, lr={"attention": 1e-3, "rest": 1e-4}).phases[1]
    assert last.rates == pytest.approx({"attention": 1e-4, "rest": 1e-5})


def test_a_state_settles_before_attention_opens_at_a_rate_that_falls_to_nothing() -> None:
    plain, settled = (delayed(Mastered("modulo"), 7, 5, lr=0.5, first_lr=0.2, settle=settle) for settle in (0, 4))
    first, settling, *opened = settled.phases
    assert plain.phases == (first, *opened)
    assert settling == replace(first, length=4, lr=Linear(0.2))
    assert [settling.rates["rest"].at(step, 4) for step in (0, 2)] == [0.2, 0.1]  # type: ignore[union-attr]
    assert plain == delayed(Mastered("modulo"), 7, 5, lr=0.5, first_lr=0.2)
    by_part = delayed(5, lr={"lstm": 0.1, "rest": WarmUp(0.2, warm_up=3)}, settle=Epochs(2))
    assert by_part.phases[1].rates == {"lstm": Linear(0.1), "rest": Linear(0.2)}
    assert by_part.phases[1].steps_at(batch=1024) == 32


def test_slowed_is_everything_but_attention_once_that_is_open() -> None:
    first, joint, last = delayed(10, joint=5, last=5, lr=0.5, slowed=0.25).phases
    assert first.rates == {"rest": 0.5}
    assert joint.rates == {"attention": 0.5, "rest": 0.125}
    assert last.rates == pytest.approx({"attention": 0.05, "rest": 0.0125})
    by_part = delayed(10, joint=5, lr={"embedding": 0.25, "rest": 0.5}, slowed=0.5).phases[1]
    assert by_part.rates == {"attention": 0.5, "embedding": 0.125, "rest": 0.25}


def test_slowed_at_its_full_rate_is_no_content() -> None:
    assert delayed(10, joint=5, slowed=1) == delayed(10, joint=5)


@pytest.mark.parametrize(
    ("covers", "off"), [("part", ("attention",)), ("sublayers", ("attend", "mlp")), ("function", ("attend",))]
)
def test_covers_says_what_is_off(covers: Covers, off: tuple[str, ...]) -> None:
    phases = delayed(10, joint=5, covers=covers).phases
    assert [phase.off for phase in phases] == [off, ()]


def test_asks_says_what_the_first_phase_asks_and_none_means_all() -> None:
    assert [phase.asks for phase in delayed(10, joint=5, last=5, asks=("recall",)).phases] == [("recall",), (), ()]
    assert delayed(10, asks=()).phases[0].asks == ()
    assert delayed(10, asks=["recall"]).phases[0].asks == ("recall",)  # type: ignore[arg-type]


@pytest.mark.parametrize(("batch", "steps"), [(1, 16_384), (64, 256), (256, 64), (1000, 17), (2**14, 1), (2**15, 1)])
def test_an_epoch_is_two_to_the_fourteen_samples(batch: int, steps: int) -> None:
    assert Phase(epochs(1)).steps_at(batch) == steps


@given(st.integers(1, 5_000), st.integers(1, 4096))
@quick
def test_epochs_are_as_many_steps_as_hold_their_samples(number: int, batch: int) -> None:
    steps = Phase(epochs(number)).steps_at(batch)
    assert steps == ceil(Fraction(number * 2**14, batch))
    assert isinstance(steps, int)


@given(st.integers(1, 10**7), st.integers(1, 4096))
@quick
def test_steps_are_steps_whatever_the_batch(steps: int, batch: int) -> None:
    assert Phase(steps).steps_at(batch) == steps


def test_epochs_can_be_broken() -> None:
    assert Phase(epochs(0.5)).steps_at(256) == 32


@given(st.integers(101, 10**7), st.integers(1, 4096))
@quick
def test_what_is_to_be_mastered_lasts_as_many_steps_as_its_limit_at_most(limit: int, batch: int) -> None:
    assert Phase(Mastered(limit=limit)).steps_at(batch) == limit


def test_any_phase_can_be_one_that_training_ends() -> None:
    lengths = Mastered("modulo"), Mastered("recall", times=2), Mastered("recall", accuracy=1)
    assert tuple(phase.length for phase in delayed(*lengths).phases) == lengths


def test_one_learning_rate_is_that_of_the_rest() -> None:
    assert Phase(5, lr=3e-4).rates == {"rest": 3e-4}
    assert Phase(5, lr={"lstm": 1e-5, "rest": 3e-4}).rates == {"lstm": 1e-5, "rest": 3e-4}


def test_schedules_are_known_by_the_names_that_users_type() -> None:
    known = registered(Schedule)
    assert {name: known[name](joint=3).name for name in ("end-to-end", "delayed")} == {
        "end-to-end": "end-to-end",
        "delayed": "delayed",
    }


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Phase(0), "schedule.length must be at least 1 step, not 0"),
        (lambda: end_to_end(-5), "schedule.joint must be at least 1 step, not -5"),
        (lambda: end_to_end(5, last=-1), "schedule.last must be at least 0 steps, not -1"),
        (lambda: delayed(0, joint=5), "schedule.first must be at least 1 step, not 0"),
        (lambda: epochs(0), "epochs"),
        (lambda: epochs(-1.5), "the epochs of a phase must be above 0, not -1.5"),
        (lambda: epochs(nan), "epochs"),
        (lambda: epochs(inf), "epochs"),
        (lambda: Mastered(accuracy=0.0), "accuracy must be above 0 and at most 1, not 0.0"),
        (lambda: Mastered(accuracy=1.01), "accuracy must be above 0 and at most 1, not 1.01"),
        (lambda: Mastered(times=0), "times must be at least 1, not 0"),
        (lambda: Mastered(times=1.5), "times must be a whole number, not 1.5"),
        (lambda: Mastered(looks=0), "looks must be at least 1, not 0"),
        (lambda: Mastered(every=0), "every must be at least 1, not 0"),
        (lambda: Mastered(every=-50), "every must be at least 1, not -50"),
        (lambda: Mastered(every=120), "every must be a multiple of 50, the steps made in one go, not 120"),
        (lambda: Mastered(limit=100), "limit must be more than every = 100, or nobody looks, not 100"),
        (lambda: Phase(5, lr={"attention": 1e-3}), "needs a 'rest'"),
        (lambda: Phase(5, lr=-1e-4), "schedule.lr must be at least 0, not -0.0001"),
        (lambda: Phase(5, lr=nan), "schedule.lr must be at least 0, not nan"),
        (lambda: Phase(5, lr={"attention": inf, "rest": 1e-3}), "schedule.lr must be finite and at least 0, not inf"),
        (lambda: delayed(5, covers="heads"), "schedule.covers must be 'part', 'sublayers' or 'function', not 'heads'"),
        (lambda: delayed(5, slowed=-0.5), "schedule.slowed must be at least 0, not -0.5"),
        (lambda: delayed(5, slowed={"lstm": "slow"}), "schedule.slowed.lstm must be a number"),
        (lambda: delayed(5, slowed={"rest": 0.5}), "for everything but attention it is one number"),
        (lambda: delayed(5, settle=-1), "schedule.settle must be at least 0 steps, not -1"),
        (lambda: delayed(5, settle=Mastered("modulo")), "schedule.settle is a number of steps, or epochs"),
        (lambda: delayed(5, lr=Linear(0.1), settle=3), "which falls by itself: leave out one of them"),
        (lambda: Schedule("none", ()), "a schedule has at least one phase"),
    ],
)
def test_a_schedule_that_cannot_be_followed_is_refused(make: Callable[[], object], told: str) -> None:
    with pytest.raises(LabError) as caught:
        make()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
