"""Every task that can be chosen by name: drawn where its generator is, kept by a run, trained at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lengthlab as ll
from lengthlab.registry import registered
from lengthlab.spec.duration import BLOCK
from lengthlab.spec.seeds import seed_for
from lengthlab.spec.toml import make
from lengthlab.tasks import Task
from lengthlab.tasks.card import card
from lengthlab.tasks.lengths import spread
from lengthlab.training.data import Data

NAMES = sorted(set(registered(Task)) - {"mixture", "few", "language", "rule"})  # which are made of something
KINDS = (
    "passkey",
    "mqar",
    "state-recall",
    "group-recall",
    "unique-left",
    "last-right",
    "copy",
    "majority",
    "binary-majority-interleave",
    "sort",
    "binary-addition",
    "D3",
)
DOCUMENT = Path(__file__).parent.parent / "docs" / "own.md"


@pytest.fixture(params=NAMES)
def task(request: pytest.FixtureRequest) -> Task:
    made: Task = make(Task, request.param)
    return made


def lengths(task: Task) -> tuple[int, int]:
    most = task.shortest + 8
    return task.shortest, most if task.shortest != task.longest else task.shortest  # a plane has one length


def test_a_batch_lives_on_the_device_of_its_generator(task: Task) -> None:
    # Anything made without naming a device would land on the default device, here another one than the generator's.
    with torch.device("meta"):
        batch = task.sample(4, lengths(task), torch.Generator().manual_seed(0))
    assert {tensor.device.type for tensor in (batch.tokens_BT, *batch.target.values(), batch.length_B)} == {"cpu"}


def test_the_same_seed_draws_the_same_batch_and_leaves_the_shared_state_alone(task: Task) -> None:
    before = torch.get_rng_state()
    one, same = (task.sample(4, lengths(task), torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one.tokens_BT, same.tokens_BT)
    assert all(torch.equal(one.target[question], same.target[question]) for question in task.questions)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_task_is_called_as_users_type_it(task: Task, request: pytest.FixtureRequest) -> None:
    assert task.name == request.node.callspec.params["task"]


@pytest.mark.parametrize("name", KINDS)
def test_a_card_shows_the_answers_of_its_sample(name: str) -> None:
    task: Task = make(Task, name)
    made = card(task, trivial_length=9)
    assert (made.name, made.shortest) == (name, task.shortest)
    asked = {question: answer for question, answer in made.answers.items() if answer}  # a sample may not ask everything
    assert asked == {question: tuple(answer) for question, answer in task.solve(made.sample).items()}


def test_a_run_keeps_its_task(task: Task) -> None:
    run = ll.Run(task, ll.models.lstm(8), ll.end_to_end(5), lengths=lengths(task), evaluate=lengths(task)[1:])
    assert ll.Run.from_json(run.to_json()).task == task


@pytest.mark.parametrize("batch", [4, 16], ids=["padded", "every length"])
def test_what_is_asked_of_every_sample_is_what_the_engine_trains_on(task: Task, batch: int) -> None:
    run = ll.Run(task, ll.models.lstm(8), ll.end_to_end(5), lengths=lengths(task), batch=batch, evaluate=lengths(task)[1:])
    phase = run.schedule.phases[0]
    data = Data(run, phase, run.network(), torch.device("cpu"))
    few = batch == 4 and task.shortest != task.longest
    assert (data.documents is None) == (few or task.tokens(9) is None)
    for number in range(2):
        steps = data.block(number).steps
        drawn = task.draw(*_same_draw(data, run, number))
        assert int((steps.target_BQ >= 0).sum()) == sum(int((each >= 0).sum()) for each in drawn.target.values())


def _same_draw(data: Data, run: ll.Run, number: int) -> tuple[torch.Tensor, torch.Generator]:
    generator = torch.Generator().manual_seed(seed_for("data", run.seed) + number)
    return torch.cat([spread(run.batch, data.lengths, generator) for _ in range(BLOCK)]), generator


@pytest.mark.parametrize("name", KINDS)
def test_it_is_trained_and_measured(name: str, tmp_path: Path) -> None:
    task: Task = make(Task, name)
    run = ll.Run(task, ll.models.lstm(8), ll.end_to_end(3), lengths=lengths(task), batch=16, evaluate=lengths(task)[1:])
    count = ll.train(run, store=tmp_path).count(lengths(task)[1])
    assert 0 <= count.accuracy <= count.token_accuracy <= 1


def test_the_guide_lists_every_task() -> None:
    table = DOCUMENT.read_text().partition("### Tasks that are there")[2].partition("###")[0]
    ranges = {f"tomita-{number}" for number in range(2, 7)}  # tomita-1 … tomita-7
    assert {name for name in registered(Task) if f"`{name}`" not in table} == ranges
