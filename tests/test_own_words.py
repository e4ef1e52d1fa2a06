"""What a model says when it reads its own words: as somebody would read it who goes on word by word, and what that comes to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from command import Call
from lengthlab.evaluation.accuracy import evaluation_set
from lengthlab.evaluation.own_words import outcome_counts, own_words
from lengthlab.models import Model, hybrid_block, lstm, t5_decoder, transformer
from lengthlab.models.layout import Layout
from lengthlab.models.model import logits
from lengthlab.rules.wording import Form
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import end_to_end
from lengthlab.tasks import Few, Mixture, ModuloRecall, RulePointers, Task, coin_flips_rule, digit_sum_rule
from lengthlab.tasks.rule_pointers import FIRST
from lengthlab.training import measure, train

MODELS = {
    "lstm": lstm(8),
    "rotary": transformer(16, blocks=2, heads=2),
    "hybrid": hybrid_block(16, blocks=1, heads=2, positions="none", scores="log-n"),
}


def trained(model: Model, task: Task, seed: int = 0) -> nn.Module:
    """A network that says some things right: a few steps on short samples."""
    torch.manual_seed(seed)
    network = model.build(task.vocabulary)
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(40):
        batch = task.sample(16, (1, 3), generator)
        position_BT = None if batch.position_BT is None else batch.position_BT[:, :-1]
        logits_BTV = logits(network, batch.tokens_BT[:, :-1], Layout(position_BT))
        loss = nn.functional.cross_entropy(logits_BTV.flatten(0, 1), batch.target["answer"][:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.eval()


def word_by_word(network: nn.Module, task: Task, length: int, samples: int) -> list[list[str]]:
    """The same, slowly: every sample alone, every beginning read anew, from <sep> on."""
    said = []
    (batch,) = evaluation_set(task, length, samples)
    longest = batch.tokens_BT.shape[1]
    for row, tokens_T in enumerate(batch.tokens_BT):
        words = task.decode(tokens_T)
        sep = words.index("<sep>")
        written = words[: sep + 1]
        while written[-1] != "<eos>" and len(written) < longest + longest // 2:
            tokens_1T = torch.tensor([[task.words.index(word) for word in written]])
            ids = None if batch.position_BT is None else pointed_ids(written, int(batch.position_BT[row, FIRST, 0]), task)
            said_V = logits(network, tokens_1T, Layout(ids))[0, -1]
            written.append(task.words[int(said_V.argmax())])
        said.append(written[sep + 1 :])
    return said


def pointed_ids(written: list[str], start: int, task: Task) -> Tensor:
    """As the task's page tells them, counted word by word."""
    assert isinstance(task, RulePointers)
    sep, loop, last = written.index("<sep>"), f"L{task.exercise.rule.loops[0]}", task.ids - 1
    ids, turn, place = [], -1, 0
    for index, word in enumerate(written):
        if index < sep:
            ids.append((max(0, start + index - FIRST) if index >= FIRST else 0, 0))
            continue
        place = 0 if word == loop or index == sep else place + 1
        turn += word == loop
        ids.append((min(start + max(turn, 0), last), min(place, last)))
    return torch.tensor([ids])


@pytest.mark.parametrize("form", ["direct", "scratchpad", "trace"])
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_what_is_said_is_what_reading_word_by_word_says(name: str, form: Form) -> None:
    task = coin_flips_rule(form)
    with torch.enable_grad():
        network = trained(MODELS[name], task)
    for length in (2, 4):
        found = [said for _, said in own_words(network, task, length, samples=6)]
        assert found == word_by_word(network, task, length, 6)


@torch.no_grad()
def test_ids_of_pointers_are_those_of_the_turns_that_the_model_says() -> None:
    task = RulePointers("coin-flips", "scratchpad", ids=10)
    model = t5_decoder(16, 1, 2, position_ids=10, tables=2)
    with torch.enable_grad():
        network = trained(model, task)
    found = [(right, said) for right, said in own_words(network, task.as_measured, 5, samples=8)]
    assert [said for _, said in found] == word_by_word(network, task.as_measured, 5, 8)
    turns = {(right.count("L3"), said.count("L3")) for right, said in found}
    assert any(right != said for right, said in turns)  # else right ids would have done


class Repeats(nn.Module):
    """Says one word for ever, or what stands in its list, and then the end."""

    def __init__(self, task: Task, said: list[str]) -> None:
        super().__init__()
        self.task, self.said = task, said

    def forward(self, tokens_BT: Tensor) -> Tensor:
        words = self.task.words
        logits_BTV = torch.zeros(*tokens_BT.shape, len(words))
        sep_B = (tokens_BT == words.index("<sep>")).byte().argmax(dim=1)
        for row, sep in enumerate(sep_B.tolist()):
            for column in range(sep, tokens_BT.shape[1]):
                word = self.said[column - sep] if column - sep < len(self.said) else self.said[-1]
                logits_BTV[row, column, words.index(word)] = 1
        return logits_BTV


def test_a_right_result_counts_whatever_stands_before_it() -> None:
    task = coin_flips_rule("scratchpad")
    right = [words[words.index("<sep>") + 1 :][-2] for words in (task.decode(row) for row in _first(task, 4, 20))]
    for said, enough, no_extra in (
        ("return True <eos>", 0, 20),
        ("L3 [ ] True L3 [ ] True L3 [ ] True L3 [ ] True L3 [ ] True return True <eos>", 20, 20),
        ("L3 L3 L3 L3 L3 L3 L3 L3 return True <eos>", 20, 0),
    ):
        counts = outcome_counts(Repeats(task, said.split()), task, [4], samples=20)
        assert {count.question: (count.correct, count.total) for count in counts} == {
            "result": (right.count("True"), 20),
            "enough-turns": (enough, 20),
            "no-extra-turn": (no_extra, 20),
        }


def test_who_never_ends_is_stopped() -> None:
    task = coin_flips_rule("scratchpad")
    (longest,) = {len(row) for row in _first(task, 3, 5)}
    for right, said in own_words(Repeats(task, ["["]), task, 3, samples=5):
        sep = right.index("<sep>")
        assert said == ["["] * (longest + longest // 2 - sep - 1)


def _first(task: Task, length: int, samples: int) -> list[Tensor]:
    return [row for batch in evaluation_set(task, length, samples) for row in batch.tokens_BT]


def test_outcomes_stand_beside_the_questions_of_a_run(tmp_path: Path, call: Call) -> None:
    model, plan = lstm(width=8), end_to_end(3)
    result = train(Run(coin_flips_rule("scratchpad"), model, plan, (1, 2), batch=4, evaluate=(2,)), tmp_path / "runs")
    assert result.count(2, "result").total == result.count(2, "enough-turns").total == 100
    assert result.count(2).total == 1000
    again = measure(result.folder, [2, 3])
    assert again.counts[: len(result.counts)] == result.counts
    assert again.count(3, "no-extra-turn").total == 100
    kept = result.folder.read_json("result.json")["chance"]
    assert (kept["result"], kept["answer"]["3"], kept["all"]["3"]) == (0.5, 0.125, 0.125)
    shown = call("report", tmp_path / "runs").out
    assert "1,000 samples a cell, 100 of result and enough-turns and no-extra-turn" in " ".join(shown.split())
    assert "missing" not in shown


def test_a_task_without_outcomes_is_not_asked_again() -> None:
    assert outcome_counts(nn.Identity(), ModuloRecall(), [4]) == []


@torch.no_grad()
def test_few_samples_and_mixtures_have_the_outcomes_of_their_tasks() -> None:
    flips, sums = coin_flips_rule("scratchpad"), digit_sum_rule("scratchpad")
    for tag in (True, False):
        mixed = Mixture((flips, Few(sums, 3)), tag=tag)
        counts = {count.question: count for count in outcome_counts(Repeats(mixed, ["<eos>"]), mixed, [3], samples=50)}
        assert set(counts) == {
            f"{task}/{each}" for task in ("rule-coin-flips", "few-rule-digit-sum") for each in flips.outcomes
        }
        assert sum(counts[f"{task}/result"].total for task in ("rule-coin-flips", "few-rule-digit-sum")) == 50
        assert all(counts[f"{task}/result"].correct == 0 for task in ("rule-coin-flips", "few-rule-digit-sum"))
    alone = Mixture((flips, sums), measured=(0, 1))
    assert {count.question for count in outcome_counts(Repeats(alone, ["<eos>"]), alone, [2], samples=4)} == {
        f"rule-digit-sum/{each}" for each in sums.outcomes
    }
    assert Mixture((flips, RulePointers())).outcomes == tuple(f"rule-coin-flips/{each}" for each in flips.outcomes)
