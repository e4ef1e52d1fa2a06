"""What a task must do to be learned and measured, each thing tried on sequences that it draws.

A trial gives whether it holds and what was seen. Positions count from 0.

Shapes: B samples, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.inspection.draws import Draws, shared_states, untouched
from lengthlab.inspection.verdict import Seen
from lengthlab.store.rows import ALL, OLD_ALL
from lengthlab.tasks import IGNORE, Batch, Mixture

RESERVED = (ALL, OLD_ALL)
"""Under these names results keep whether every question of a sample is right; `both` in files of version 0.1."""

TaskTrial = Callable[[Draws], Seen]


def _names(draws: Draws) -> Seen:
    task, words = draws.task, draws.vocabulary
    for question in task.questions:
        if question in RESERVED:
            return False, f"a question is named '{question}', under which it is kept whether all questions are right: rename it"
    if not task.questions or len(set(task.questions)) < len(task.questions):
        return False, f"its questions are {task.questions}: it needs at least one, each with a name of its own"
    for question in task.state:
        if question not in task.questions:
            return False, f"its state names '{question}', which is none of its questions {task.questions}"
    if len(set(words)) < len(words):
        twice = next(word for word in words if words.count(word) > 1)
        return False, f"its words have '{twice}' more than once: every token needs a word of its own"
    return True, f"{', '.join(task.questions)}; {len(words):,} words, of which '{words[0]}' is padding"


def _shapes(draws: Draws) -> Seen:
    batch, size = draws.batch, len(draws.n_B)
    if not isinstance(batch, Batch):
        return False, f"draw gives a {type(batch).__name__}, which is no Batch"
    if set(batch.target) != set(draws.task.questions):
        return False, f"draw has targets of {sorted(batch.target)}, and the questions are {sorted(draws.task.questions)}"
    named = {"tokens_BT": batch.tokens_BT} | {f"the target of '{name}'": each for name, each in batch.target.items()}
    named |= {} if batch.position_BT is None else {"position_BT": batch.position_BT}
    for name, x_BT in named.items():
        several = name == "position_BT" and x_BT.dim() == 3  # ids of a token, as row and column
        if x_BT.dim() != 2 + several or len(x_BT) != size or x_BT.shape[:2] != batch.tokens_BT.shape:
            return False, f"{name} has shape {tuple(x_BT.shape)}; what is needed is ({size}, T), the same T for all"
        if x_BT.is_floating_point():
            return False, f"{name} is of {x_BT.dtype}; what is needed is whole numbers"
    if batch.length_B.shape != (size,):
        return False, f"length_B has shape {tuple(batch.length_B.shape)}; what is needed is ({size},)"
    return True, f"{size} sequences of n = {', '.join(map(str, draws.lengths))}"


def _vocabulary(draws: Draws) -> Seen:
    batch, size = draws.batch, len(draws.vocabulary)
    answers = {f"an answer to '{name}'": target_BT[target_BT != IGNORE] for name, target_BT in batch.target.items()}
    for what, tokens in ({"a token": batch.tokens_BT} | answers).items():
        wrong = tokens[(tokens < 0) | (tokens >= size)]
        if len(wrong):
            return False, f"{what} is {int(wrong[0])}, and there are words for 0 to {size - 1}"
    return True, f"tokens and answers are from 0 to {size - 1}"


def _padding(draws: Draws) -> Seen:
    batch = draws.batch
    place_T, length_B1 = torch.arange(batch.tokens_BT.shape[1]), batch.length_B[:, None]
    pad_BT, beyond_BT = batch.tokens_BT == draws.task.pad, place_T >= length_B1
    asked_BT = torch.stack([target_BT != IGNORE for target_BT in batch.target.values()]).any(dim=0)
    faults = {
        "is asked where no token follows": asked_BT & (place_T >= length_B1 - 1),
        "has padding (token 0) inside": pad_BT & ~beyond_BT,
        "has tokens beyond its length_B": ~pad_BT & beyond_BT,
    }
    for fault, wrong_BT in faults.items():
        if wrong_BT.any():
            row, place = wrong_BT.nonzero()[0].tolist()
            length = int(batch.length_B[row])
            return False, f"a sequence of n = {int(draws.n_B[row])} {fault}, at position {place} (its length_B is {length})"
    silent_B = ~asked_BT.any(dim=1)
    if silent_B.any():
        return False, f"a sequence asks nothing: {draws.show(int(silent_B.nonzero()[0]))}"
    return True, "token 0 on the right alone, and nothing asked there"


def _next_token(draws: Draws) -> Seen:
    batch, words = draws.batch, draws.vocabulary
    if draws.task.labels:
        return True, "every answer is a label, and stands beside the sequence"
    next_BT = F.pad(batch.tokens_BT[:, 1:], (0, 1), value=draws.task.pad)
    for question, target_BT in batch.target.items():
        wrong_BT = (target_BT != IGNORE) & (target_BT != next_BT)
        if wrong_BT.any():
            row, place = wrong_BT.nonzero()[0].tolist()
            wanted, there = words[int(target_BT[row, place])], words[int(next_BT[row, place])]
            told = f"the answer to '{question}' is '{wanted}', and the token at its place, {place + 1}, is '{there}'"
            return False, f"{told}: {draws.show(row)}"
    return True, "every answer is the token that comes next"


def _solved(draws: Draws) -> Seen:
    for row, words in enumerate(draws.words):
        truth = {question: tuple(answer) for question, answer in draws.task.solve(words).items()}
        for question, answers in draws.answers.items():
            if answers[row] != truth.get(question, ()):
                said = f"draw wrote '{' '.join(answers[row])}', solve says '{' '.join(truth.get(question, ()))}'"
                return False, f"of '{question}' {said}: {draws.show(row)}"
    for question in () if draws.task.labels else draws.task.questions:
        if _copies(draws, question):
            return False, f"solve repeats what stands where the answer to '{question}' is, right or wrong: it has to find it"
    return True, f"on {len(draws.words)} sequences"


def _copies(draws: Draws, question: str) -> bool:
    """Whether `solve` would agree with any draw: of a spoilt answer it says what is written, every time."""
    said = []
    for spoilt_T, wanted in _spoilt(draws, question):
        try:
            said.append(tuple(draws.task.solve(draws.task.decode(spoilt_T)).get(question, ())) == wanted)
        except Exception:  # it looks at what is written there, and does not believe it
            said.append(False)
    return bool(said) and all(said)


def _spoilt(draws: Draws, question: str) -> Iterator[tuple[Tensor, tuple[str, ...]]]:
    """A sequence of each length with the first token of the answer replaced by one of another answer, and what it then says."""
    target_BT, words = draws.batch.target[question], draws.vocabulary
    known = target_BT[target_BT != IGNORE]
    for tokens_T, target_T in zip(draws.batch.tokens_BT[:: draws.each], target_BT[:: draws.each], strict=True):
        asked = (target_T != IGNORE).nonzero()[:, 0]
        others = known[known != target_T[asked[0]]] if len(asked) else known[:0]
        if len(others):
            spoilt_T = tokens_T.index_fill(0, asked[:1] + 1, int(others[0]))
            yield spoilt_T, tuple(words[token] for token in spoilt_T[asked + 1].tolist())


def _repeated(draws: Draws) -> Seen:
    with untouched():
        before = shared_states()
        first = draws.task.draw(draws.n_B.clone(), Generator().manual_seed(0))
        moved = [name for name, state in shared_states().items() if state != before[name]]
        again = draws.task.draw(draws.n_B.clone(), Generator().manual_seed(0))
    if moved:
        return False, f"draw takes random numbers from {moved[0]}, which the whole process shares: take them from its generator"
    if not _same(first, again):
        return False, "two draws from a generator in the same state differ: something else decides, too"
    return True, "the same from the same state, no other random numbers taken"


def _varied(draws: Draws) -> Seen:
    """Many samples are asked everything, and are not always the same ones."""
    never = [name for name, target_BT in draws.batch.target.items() if not (target_BT != IGNORE).any()]
    if never and not isinstance(draws.task, Mixture):
        return False, f"no sample of {len(draws.n_B)} asks '{never[0]}'"
    if _same(draws.batch, draws.draw(seed=1)):
        certain = all(draws.task.chances(n)[ALL] == 1 for n in draws.lengths)
        told = "generators in different states give the same sequences"
        return certain, f"{told}, as its chance of 1 says" if certain else f"{told}: draw does not use the one it is given"
    return True, "every question is asked, and other random numbers give other sequences"


def _same(one: Batch, two: Batch) -> bool:
    first, second = _tensors(one), _tensors(two)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def _tensors(batch: Batch) -> dict[str, Tensor]:
    targets = {f"target of {question}": target_BT for question, target_BT in batch.target.items()}
    positions = {} if batch.position_BT is None else {"position_BT": batch.position_BT}
    return {"tokens_BT": batch.tokens_BT, "length_B": batch.length_B} | positions | targets


def _as_stated(draws: Draws) -> Seen:
    task, length_B = draws.task, draws.batch.length_B
    for n, tokens in zip(draws.n_B.tolist(), length_B.tolist(), strict=True):
        stated = task.tokens(n)
        if stated is not None and stated != tokens:
            return False, f"a sequence of n = {n} has {tokens} tokens, where its `tokens` says {stated}"
    asked_B = draws.batch.asked(task.questions)
    if task.asks_alike and asked_B.min() < asked_B.max():
        return False, f"`asks_alike` is True, and sequences are asked at {int(asked_B.min())} to {int(asked_B.max())} positions"
    counts = [_range(length_B[draws.n_B == n]) for n in draws.lengths]
    return True, f"n = {', '.join(map(str, draws.lengths))} have {', '.join(counts)} tokens"


def _longer(draws: Draws) -> Seen:
    """A model that is measured further has something longer to read."""
    least, most = min(draws.lengths), max(draws.lengths)
    few_B, many_B = (draws.batch.length_B[draws.n_B == n] for n in (least, most))
    told = f"{_range(few_B)} tokens at n = {least}, {_range(many_B)} at n = {most}"
    if least < most and many_B.max() <= few_B.max():
        return False, f"{told}: draw makes nothing of the lengths it is given"
    return True, told


def _range(count_B: Tensor) -> str:
    least, most = int(count_B.min()), int(count_B.max())
    return str(least) if least == most else f"{least} to {most}"


NAMES: dict[str, TaskTrial] = {"has names of its own": _names}
SHAPES: dict[str, TaskTrial] = {"draws what it is asked for": _shapes}
"""Where that does not hold, nothing of what follows can be tried."""
TRIALS: dict[str, TaskTrial] = {
    "keeps to its words": _vocabulary,
    "pads on the right, asks nothing there": _padding,
    "is answered by the tokens that follow": _next_token,
    "is solved as it is drawn": _solved,
    "draws by its generator alone": _repeated,
    "has the sizes that it states": _as_stated,
    "asks everything, of many sequences": _varied,
}
LONGER: dict[str, TaskTrial] = {"is longer where a greater length is asked": _longer}
QUICK = {what: trial for what, trial in TRIALS.items() if trial is not _varied}
"""Before training: what few samples show. A task may have one sequence of each length, ask a question now and then, or put more
into as many tokens.
"""
