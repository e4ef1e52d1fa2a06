"""The tasks draw what they say they draw, held against an oracle written from the statement of the task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthlab import memory
from lengthlab.errors import LabError
from lengthlab.registry import registered
from lengthlab.tasks import IGNORE, Batch, ModuloRecall, Task, modulo, modulo_recall, recall
from lengthlab.tasks.card import card
from lengthlab.tasks.lengths import spread
from operations import Operations
from oracle import Reading, read

QUESTIONS = (("modulo", "recall"), ("modulo",), ("recall",))
NAMES = ["modulo", "modulo-recall", "recall"]
quick = settings(max_examples=40)


def draw(task: Task, size: int, lengths: tuple[int, int], seed: int = 0) -> Batch:
    return task.sample(size, lengths, torch.Generator().manual_seed(seed))


def readings(task: ModuloRecall, batch: Batch) -> list[Reading]:
    return [read(task.decode(tokens_T), task.modulus, task.key_tokens) for tokens_T in batch.tokens_BT]


@st.composite
def drawn(pick: st.DrawFn) -> tuple[ModuloRecall, tuple[int, int], Batch]:
    """Any task, any range of lengths it reaches, any batch of it."""
    keys, long = pick(st.integers(1, 40)), pick(st.sampled_from((1, 1, 2, 3)))
    task = ModuloRecall(pick(st.integers(2, 30)), pick(st.integers(2, 30)), keys, pick(st.sampled_from(QUESTIONS)), long)
    shortest = pick(st.integers(1, min(40, task.longest)))
    lengths = (shortest, pick(st.integers(shortest, min(40, task.longest))))
    return task, lengths, draw(task, pick(st.integers(1, 6)), lengths, pick(st.integers(0, 2**31 - 1)))


def spread_evenly(counts: Counter[int] | Counter[str], places: int, total: int) -> bool:
    """Whether every place was hit as often as chance has it, give or take five standard deviations."""
    expected = total / places
    return len(counts) == places and all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


@given(drawn())
@quick
def test_every_sequence_says_what_the_oracle_says(case: tuple[ModuloRecall, tuple[int, int], Batch]) -> None:
    task, _, batch = case
    for reading in readings(task, batch):
        assert tuple(reading.said) == task.questions
        assert reading.said == reading.right


@given(drawn())
@quick
def test_solve_agrees_with_the_oracle_without_seeing_the_answers(case: tuple[ModuloRecall, tuple[int, int], Batch]) -> None:
    task, _, batch = case
    for tokens_T in batch.tokens_BT:
        words = task.decode(tokens_T)
        # A solver that copies what the sequence says would pass on whole sequences, so the written answers are spoilt.
        blind = list(words)
        for question in task.questions:
            blind[words.index(f"<{question}>") + (1 if question == "modulo" else 1 + task.key_tokens)] = "0"
        right = read(words, task.modulus, task.key_tokens).right
        assert task.solve(blind) == {question: (answer,) for question, answer in right.items()}


@given(drawn())
@quick
def test_keys_and_values_are_of_their_alphabets(case: tuple[ModuloRecall, tuple[int, int], Batch]) -> None:
    task, (shortest, longest), batch = case
    for reading in readings(task, batch):  # that keys are distinct, the oracle checks as it reads
        assert shortest <= len(reading.keys) <= longest
        assert all(0 <= int(word[1:]) < task.keys for key in reading.keys for word in key.split())
        assert all(0 <= value < task.values for value in reading.values)


@given(drawn())
@quick
def test_the_token_after_the_position_is_the_answer(case: tuple[ModuloRecall, tuple[int, int], Batch]) -> None:
    task, _, batch = case
    assert tuple(batch.target) == task.questions
    for question, target_BT in batch.target.items():
        for tokens_T, target_T in zip(batch.tokens_BT, target_BT, strict=True):
            [[position]] = (target_T != IGNORE).nonzero().tolist()
            assert target_T[position] == tokens_T[position + 1]
            assert task.words[target_T[position]] == read(task.decode(tokens_T), task.modulus, task.key_tokens).right[question]
            asked_at = task.words[tokens_T[position]]
            assert asked_at == "<modulo>" if question == "modulo" else asked_at.startswith("k")


@given(drawn())
@quick
def test_padding_is_on_the_right_alone(case: tuple[ModuloRecall, tuple[int, int], Batch]) -> None:
    task, _, batch = case
    longest = max(len(reading.keys) for reading in readings(task, batch))
    asked, long = {("modulo", "recall"): 4, ("modulo",): 2, ("recall",): 2}[task.questions], task.key_tokens
    asked += long if "recall" in task.questions else 0
    assert batch.tokens_BT.shape[1] == 1 + (1 + long) * longest + asked
    for tokens_T, reading in zip(batch.tokens_BT, readings(task, batch), strict=True):
        written = 1 + (1 + long) * len(reading.keys) + asked
        assert (tokens_T[:written] != task.pad).all()
        assert (tokens_T[written:] == task.pad).all()


@given(drawn())
@quick
def test_a_sequence_has_as_many_tokens_as_its_task_says(case: tuple[ModuloRecall, tuple[int, int], Batch]) -> None:
    task, _, batch = case
    for tokens_T, reading in zip(batch.tokens_BT, readings(task, batch), strict=True):
        assert int((tokens_T != task.pad).sum()) == task.tokens(len(reading.keys))
    assert torch.equal(batch.length_B, (batch.tokens_BT != task.pad).sum(dim=1))


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 30), st.integers(0, 99))
@quick
def test_lengths_are_spread_evenly_over_both_ends(size: int, shortest: int, more: int, seed: int) -> None:
    n = spread(size, (shortest, shortest + more), torch.Generator().manual_seed(seed)).tolist()
    assert n == sorted(n)
    assert shortest <= n[0] <= n[-1] <= shortest + more
    if size >= more + 1:
        assert set(n) == set(range(shortest, shortest + more + 1))
        assert max(Counter(n).values()) - min(Counter(n).values()) <= 1
        assert n == spread(size, (shortest, shortest + more), torch.Generator().manual_seed(seed + 1)).tolist()
    else:
        slices = [int((length - shortest) * size / (more + 1)) for length in n]
        assert all(abs(found - expected) <= 1 for expected, found in enumerate(slices))


def test_a_batch_smaller_than_its_range_meets_every_length_in_time() -> None:
    generator = torch.Generator().manual_seed(0)
    met = Counter(length for _ in range(600) for length in spread(4, (1, 10), generator).tolist())
    assert set(met) == set(range(1, 11))
    assert spread_evenly(met, 10, 2400)


@given(st.integers(0, 2**31 - 2), st.sampled_from(NAMES))
@quick
def test_the_same_seed_draws_the_same_batch_and_another_seed_another(seed: int, name: str) -> None:
    task = registered(Task)[name]()
    one, same, other = (draw(task, 4, (2, 9), s) for s in (seed, seed, seed + 1))
    assert torch.equal(one.tokens_BT, same.tokens_BT)
    assert not torch.equal(one.tokens_BT, other.tokens_BT)
    for question in task.questions:
        assert torch.equal(one.target[question], same.target[question])


def test_a_generator_goes_on_from_batch_to_batch() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (modulo().sample(4, (2, 9), generator).tokens_BT for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("questions", QUESTIONS)
def test_a_batch_lives_on_the_device_of_its_generator(questions: tuple[str, ...]) -> None:
    # Anything made without naming a device would land on the default device, here another one than the generator's.
    with torch.device("meta"):
        batch = draw(ModuloRecall(keys=8, questions=questions), 3, (1, 8))
    places = [batch.tokens_BT, *batch.target.values(), batch.length_B]
    assert {tensor.device.type for tensor in places} == {"cpu"}


def test_a_batch_moves_with_its_answers() -> None:
    moved = draw(ModuloRecall(keys=8), 3, (1, 8)).to("meta")
    places = [moved.tokens_BT, *moved.target.values(), moved.length_B]
    assert {tensor.device.type for tensor in places} == {"meta"}


def test_sampling_leaves_the_global_random_state_alone() -> None:
    before = torch.get_rng_state()
    draw(ModuloRecall(), 8, (1, 25))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_key_asked_for_is_any_of_the_pairs_alike() -> None:
    task = recall(values=3, keys=8)
    places = Counter(reading.keys.index(str(reading.asked)) for reading in readings(task, draw(task, 2000, (8, 8))))
    assert spread_evenly(places, 8, 2000)


def test_the_key_asked_for_is_any_of_the_pairs_alike_where_lengths_vary() -> None:
    task = recall(values=3, keys=5)
    of_three = [reading for reading in readings(task, draw(task, 2000, (1, 5))) if len(reading.keys) == 3]
    places = Counter(reading.keys.index(str(reading.asked)) for reading in of_three)
    assert spread_evenly(places, 3, len(of_three))


def test_keys_of_two_tokens_come_alike_are_distinct_and_may_be_all_there_are() -> None:
    task = ModuloRecall(values=3, keys=4, questions=("recall",), key_tokens=2)
    assert task.longest == 16
    assert all(len(set(reading.keys)) == 16 for reading in readings(task, draw(task, 20, (16, 16))))
    task = replace(task, keys=100)
    keys = [key.split() for reading in readings(task, draw(task, 1000, (4, 4))) for key in reading.keys]
    for place in range(2):
        assert spread_evenly(Counter(int(key[place][1:]) for key in keys), 100, 4000)


def test_a_hundred_thousand_pairs_are_drawn_in_a_moment_from_a_small_alphabet() -> None:
    task = ModuloRecall(keys=512, key_tokens=2)
    token_P3 = draw(task, 1, (100_000, 100_000)).tokens_BT[0, 1:300_001].view(-1, 3)
    assert len(token_P3[:, :2].unique(dim=0)) == 100_000
    (reading,) = readings(task, draw(task, 1, (1_000, 1_000)))
    assert (len(reading.keys), reading.said) == (1_000, reading.right)
    with pytest.raises(LabError, match="262144 of them"):
        task.check_length(262_145)
    with pytest.raises(LabError, match="more than can be counted"):
        ModuloRecall(keys=10**9, key_tokens=3)


def keys_of(batch: Batch, pairs: int) -> torch.Tensor:
    """key_BN, the tokens of the keys of samples that have so many pairs of two tokens."""
    return batch.tokens_BT[:, 1 : 1 + 2 * pairs : 2]


@pytest.mark.parametrize("pairs", [1, 25, 60, 99, 100])
def test_keys_of_a_large_alphabet_come_alike_however_many_of_them_are_taken(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modulo_recall, "SHUFFLED", 100)
    key_BN = keys_of(draw(ModuloRecall(keys=100), 4000, (pairs, pairs)), pairs)
    assert all(len(set(row)) == pairs for row in key_BN.tolist())
    assert spread_evenly(Counter(key_BN.flatten().tolist()), 100, 4000 * pairs)
    assert spread_evenly(Counter(key_BN[:, 0].tolist()), 100, 4000), "nor are keys in an order"


def test_a_large_alphabet_is_not_shuffled_for_a_few_keys() -> None:
    task = ModuloRecall(keys=2**17)
    with Operations() as made:
        key_BN = keys_of(draw(task, 50, (100, 100)), 100)
    assert made.largest < 50 * 100 * 5
    first = task.words.index("k0")
    assert key_BN.min() >= first
    assert key_BN.max() < first + 2**17
    assert (key_BN >= first + 2**16).any(dim=1).all()
    (key_N,) = keys_of(draw(task, 1, (100_000, 100_000)), 100_000)
    assert len(key_N.unique()) == 100_000


def test_more_keys_than_there_is_memory_for_are_refused_before_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    task = ModuloRecall(keys=2**17)
    monkeypatch.setattr(memory, "memory_of", lambda device: 10**6)
    with pytest.raises(LabError, match="to draw 100000 keys for 1 sequences would need at least"):
        draw(task, 1, (100_000, 100_000))


def test_every_length_of_the_range_comes_alike_and_each_sample_has_its_own() -> None:
    task = modulo(keys=12)
    lengths = Counter(len(reading.keys) for reading in readings(task, draw(task, 2000, (3, 12))))
    assert set(lengths) == set(range(3, 13))
    assert spread_evenly(lengths, 10, 2000)


def test_every_key_and_every_value_comes_alike() -> None:
    task = modulo(modulus=3, values=5, keys=10)
    found = readings(task, draw(task, 500, (4, 4)))
    assert spread_evenly(Counter(key for reading in found for key in reading.keys), 10, 2000)
    assert spread_evenly(Counter(value for reading in found for value in reading.values), 5, 2000)


@pytest.mark.parametrize(("modulus", "values"), [(2, 10), (10, 2), (7, 7), (13, 4)])
def test_modulus_and_values_are_separate_numbers(modulus: int, values: int) -> None:
    task = ModuloRecall(modulus, values, keys=20)
    found = readings(task, draw(task, 400, (15, 20)))
    assert {value for reading in found for value in reading.values} == set(range(values))
    assert {int(reading.said["modulo"]) for reading in found} == set(range(modulus))


@pytest.mark.parametrize("change", [{"modulus": 7}, {"values": 7}, {"keys": 20}, {"questions": ("modulo",)}])
def test_each_parameter_changes_the_data(change: dict[str, object]) -> None:
    task = ModuloRecall(modulus=10, values=10, keys=16)
    changed: ModuloRecall = replace(task, **change)  # type: ignore[arg-type]
    one, other = (
        [t.decode(tokens_T) for tokens_T in draw(t, 50, (8, 8)).tokens_BT] for t in (task, changed)
    )  # words, not tokens: other digits would shift every key's token, and hide a parameter that does nothing
    assert one != other


def test_the_vocabulary_holds_marks_digits_and_keys_once_each() -> None:
    assert ModuloRecall(modulus=3, values=5, keys=7).vocabulary == 4 + 5 + 7
    assert ModuloRecall(modulus=5, values=3, keys=7).vocabulary == 4 + 5 + 7
    words = ModuloRecall().words
    assert len(set(words)) == len(words) == 4 + 10 + 128
    assert words[Task.pad] == "<pad>"


@pytest.mark.parametrize("name", NAMES)
def test_a_task_asks_under_the_name_that_users_type(name: str) -> None:
    task = registered(Task)[name]()
    assert task.name == name
    assert task.questions == tuple(name.split("-"))


def test_recall_has_no_modulus_that_could_change_its_vocabulary() -> None:
    assert recall(values=4, keys=6).vocabulary == 4 + 4 + 6


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ModuloRecall(modulus=1), "task.modulus must be at least 2, not 1"),
        (lambda: ModuloRecall(values=1), "task.values must be at least 2, not 1"),
        (lambda: ModuloRecall(keys=0), "task.keys must be at least 1, not 0"),
        (lambda: ModuloRecall(questions=()), "task.questions must be"),
        (lambda: ModuloRecall(questions=("recall", "modulo")), "task.questions must be"),
    ],
)
def test_sizes_that_make_no_task_are_refused(make: Callable[[], Task], told: str) -> None:
    with pytest.raises(LabError, match=told):
        make()


@pytest.mark.parametrize("lengths", [(1, 9), (9, 9)])
def test_a_length_that_the_keys_cannot_serve_is_refused(lengths: tuple[int, int]) -> None:
    told = "length 9: task 'modulo-recall' reaches 8 at most .*there are 8 of them: task.keys"
    with pytest.raises(LabError, match=told):
        draw(ModuloRecall(keys=8), 2, lengths)


@pytest.mark.parametrize(("size", "lengths"), [(2, (0, 3)), (2, (-1, 3)), (2, (3, 2)), (-1, (1, 2))])
def test_a_batch_that_cannot_be_drawn_is_refused(size: int, lengths: tuple[int, int]) -> None:
    with pytest.raises(LabError, match=r"length|size"):
        draw(ModuloRecall(keys=8), size, lengths)


@pytest.mark.parametrize("name", NAMES)
def test_the_longest_length_of_a_task_can_be_drawn(name: str) -> None:
    task = registered(Task)[name](keys=6)
    found = readings(task, draw(task, 3, (6, 6)))  # type: ignore[arg-type]
    assert all(sorted(reading.keys) == [f"k{k}" for k in range(6)] for reading in found)


def test_the_card_states_chance_as_one_over_the_answers() -> None:
    both, one = (card(task, trivial_length=1).chance for task in (ModuloRecall(4, 5, keys=9), recall(values=5, keys=9)))
    assert both == pytest.approx({"modulo": 1 / 4, "recall": 1 / 5, "all": 1 / 20})
    assert one == pytest.approx({"recall": 1 / 5, "all": 1 / 5})


def test_the_card_scores_the_last_value_seen_as_it_must_come_out() -> None:
    values, length = 5, 4
    scores = card(ModuloRecall(7, values, keys=9), trivial_length=length).trivial["last value seen"]
    # Right if the last pair was asked for, and else if its value happens to be the same; 0.05 is over four sigma.
    assert scores["recall"] == pytest.approx(1 / length + (1 - 1 / length) / values, abs=0.05)
    assert scores["modulo"] == pytest.approx(1 / 7, abs=0.05)
    assert scores["all"] <= min(scores["recall"], scores["modulo"])


def test_the_card_scores_the_commonest_answer_a_little_above_chance() -> None:
    made = card(ModuloRecall(modulus=4, values=4, keys=9), trivial_length=4)
    scores = made.trivial["always the commonest answer"]
    assert 1 / 4 <= scores["modulo"] < 0.32
    assert 1 / 4 <= scores["recall"] < 0.32


@pytest.mark.parametrize("name", NAMES)
def test_the_card_marks_the_places_of_the_answers(name: str) -> None:
    task = registered(Task)[name](keys=9)
    made = card(task, trivial_length=1)
    answers = {question: tuple(made.sample[place] for place in places) for question, places in made.scored.items()}
    assert answers == task.solve(made.sample)
    assert made.scored == {question: (len(made.sample) - end,) for question, end in _from_the_end(task.questions).items()}


def _from_the_end(questions: tuple[str, ...]) -> dict[str, int]:
    return {("modulo", "recall"): {"modulo": 4, "recall": 1}}.get(questions, dict.fromkeys(questions, 1))


def test_the_card_of_a_task_with_few_keys_keeps_to_what_it_reaches() -> None:
    made = card(modulo(keys=3))
    assert made.trivial_length == made.longest == 3
    assert len(read(made.sample, modulus=10).keys) == 3
