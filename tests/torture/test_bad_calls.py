"""What can be got wrong from Python: a `LabError` that says what and where, at the line where it is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import lengthlab as ll
from desk import everything
from lengthlab.errors import LabError

TASK = ll.tasks.ModuloRecall(keys=32)
MODEL = ll.models.lstm(width=8)
HYBRID = ll.models.hybrid_block(width=8, blocks=1, heads=2, mlp=1)
SCHEDULE = ll.end_to_end(2)
RUN = ll.Run(TASK, MODEL, SCHEDULE, lengths=(1, 2), batch=2, evaluate=(2,))
run = partial(ll.Run, TASK, MODEL, SCHEDULE)
module = ll.models.module
nan, inf = float("nan"), float("inf")


def layer() -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2)


def content(**changes: Any) -> Any:
    return RUN.to_json() | changes


CALLS: list[tuple[Callable[..., Any], str]] = [
    # a run
    (lambda: ll.Run("modulo-recall", MODEL, SCHEDULE), "task must be a task, not 'modulo-recall'"),
    (lambda: ll.Run(MODEL, TASK, SCHEDULE), "task must be a task, not Model("),
    (lambda: ll.Run(ll.tasks.ModuloRecall, MODEL, SCHEDULE), "task must be a task, not <class"),
    (lambda: ll.Run(TASK, "lstm", SCHEDULE), "model must be a model, not 'lstm'"),
    (lambda: ll.Run(TASK, ll.models.lstm, SCHEDULE), "model must be a model, not <function lstm"),
    (lambda: ll.Run(TASK, nn.Linear(1, 1), SCHEDULE), "write ll.models.module(Linear, ...)"),
    (lambda: ll.Run(TASK, nn.Linear, SCHEDULE), "write ll.models.module(Linear, ...)"),
    (lambda: ll.Run(TASK, MODEL, "delayed"), "schedule must be a schedule, not 'delayed'"),
    (lambda: ll.Run(TASK, MODEL, ll.delayed), "schedule must be a schedule, not <function delayed"),
    (lambda: ll.Run(TASK, MODEL, None), "schedule must be a schedule, not None"),
    (lambda: ll.Run(TASK, MODEL, ll.delayed(5, 5)), "no part of the model is named 'attention'"),
    (lambda: ll.Run(TASK, HYBRID, ll.delayed(5, 5, asks=["sum"])), "asks 'sum', but task 'modulo-recall' asks only"),
    (lambda: ll.Run(TASK, HYBRID, ll.delayed(ll.Mastered(question=5), 5)), "question must be a text, not 5"),
    (
        lambda: ll.Run(TASK, ll.models.transformer(positions=5), SCHEDULE),
        "positions must be",
    ),
    (lambda: ll.Run(TASK, ll.models.transformer(width=9, heads=2), SCHEDULE), "heads = 2 does not divide model.width = 9"),
    (lambda: ll.Run(TASK, MODEL, ll.Schedule(5, (ll.Phase(5),))), "schedule.name must be a text, not 5"),
    (lambda: run(lengths=5), "lengths must be [shortest, longest], not 5"),
    (lambda: run(lengths=(1,)), "lengths must be [shortest, longest], not (1,)"),
    (lambda: run(lengths=(2, 1)), "1 <= shortest <= longest, not [2, 1]"),
    (lambda: run(lengths=("1", "2")), "lengths must be a tuple (a whole number each), not ('1', '2')"),
    (lambda: run(lengths=(1, 99)), "length 99"),
    (lambda: run(batch="4"), "batch must be a whole number, not '4'"),
    (lambda: run(batch=4.0), "batch must be a whole number, not 4.0"),
    (lambda: run(batch=None), "batch must be a whole number, not None"),
    (lambda: run(batch=0), "batch must be at least 1, not 0"),
    (lambda: run(batch=10**30), "batch must be at most 9,007,199,254,740,992"),
    (lambda: run(seed=-1), "seed must be at least 0, not -1"),
    (lambda: run(seed=True), "seed must be a whole number, not True"),
    (lambda: run(evaluate=4), "evaluate must be a tuple (a whole number each), not 4"),
    (lambda: run(evaluate="4"), "evaluate must be a tuple (a whole number each), not '4'"),
    (lambda: run(evaluate=(0,)), "length 0"),
    (lambda: run(optimizer="adam"), "optimizer must be an optimizer, not 'adam'"),
    (lambda: run(optimizer=torch.optim.Adam), "optimizer must be an optimizer"),
    # its schedule
    (lambda: ll.delayed(-5, 5), "schedule.first must be at least 1 step, not -5"),
    (lambda: ll.delayed("5", 5), "schedule.first must be a whole number of steps, not '5'"),
    (lambda: ll.delayed(5.5, 5), "schedule.first must be a whole number of steps, not 5.5"),
    (lambda: ll.delayed(5, -5), "schedule.joint must be at least 1 step, not -5"),
    (lambda: ll.delayed(5, 5, -1), "schedule.last must be at least 0"),
    (lambda: ll.delayed(5, 5, lr="fast"), "schedule.lr must be a number, not 'fast'"),
    (lambda: ll.delayed(5, 5, lr=None), "schedule.lr must be a number, not None"),
    (lambda: ll.delayed(5, 5, lr=[1e-3]), "schedule.lr must be a number, not [0.001]"),
    (lambda: ll.delayed(5, 5, lr=-1), "schedule.lr must be at least 0, not -1"),
    (lambda: ll.delayed(5, 5, lr=nan), "schedule.lr must be at least 0, not nan"),
    (lambda: ll.delayed(5, 5, lr=inf), "schedule.lr must be finite"),
    (lambda: ll.delayed(5, 5, lr={"attention": 1e-3}), "needs a 'rest'"),
    (lambda: ll.delayed(5, 5, covers="all"), "'part', 'sublayers' or 'function', not 'all'"),
    (lambda: ll.delayed(5, 5, asks="modulo"), "asks must be a list of names, like ['modulo'], not 'modulo'"),
    (lambda: ll.delayed(5, 5, asks=5), "asks must be a list of names, like ['modulo'], not 5"),
    (lambda: ll.delayed(None, 5, asks=()), "schedule.first: say how long"),
    (lambda: ll.end_to_end(0), "schedule.joint must be at least 1 step, not 0"),
    (lambda: ll.end_to_end("many"), "schedule.joint must be a whole number of steps, not 'many'"),
    (lambda: ll.end_to_end(None), "schedule.joint must be a whole number of steps, not None"),
    (lambda: ll.epochs(0), "epochs of a phase must be above 0, not 0"),
    (lambda: ll.epochs("three"), "epochs of a phase must be a number, not 'three'"),
    (lambda: ll.epochs(nan), "epochs of a phase must be above 0, not nan"),
    (lambda: ll.epochs(None), "epochs of a phase must be a number, not None"),
    (lambda: ll.Mastered(accuracy=0), "accuracy must be above 0 and at most 1, not 0"),
    (lambda: ll.Mastered(accuracy="high"), "accuracy must be a number, not 'high'"),
    (lambda: ll.Mastered(times=0), "times must be at least 1, not 0"),
    (lambda: ll.Mastered(every=7), "every must be a multiple of 50"),
    (lambda: ll.Mastered(limit=1), "limit must be more than every"),
    (lambda: ll.Phase(0), "at least 1 step, not 0"),
    (lambda: ll.Phase(5, off="attention"), "off must be a list of names, like ['attention']"),
    (lambda: ll.Phase(5, off=5), "off must be a list of names"),
    (lambda: ll.Phase(5, asks="modulo"), "asks must be a list of names, like ['modulo']"),
    (lambda: ll.Phase(5, lengths=5), "lengths of a phase must be [shortest, longest], not 5"),
    (lambda: ll.Phase(5, lengths=(5,)), "lengths of a phase must be [shortest, longest], not (5,)"),
    (lambda: ll.Phase(5, mixture="half"), "mixture of a phase must be a list of shares"),
    (lambda: ll.Phase(5, mixture=("half", 1)), "a share of a mixture must be a number, not 'half'"),
    (lambda: ll.Schedule("x", ()), "at least one phase"),
    (lambda: ll.Schedule("x", 5), "a list of Phase, not 5"),
    (lambda: ll.Schedule("x", ("phase",)), "a list of Phase, not ('phase',)"),
    # its optimizer and rates
    (lambda: ll.Adam(beta1=1), "optimizer.beta1 must be at least 0 and less than 1, not 1"),
    (lambda: ll.Adam(beta2="a"), "optimizer.beta2 must be a number, not 'a'"),
    (lambda: ll.Adam(clip="a"), "optimizer.clip must be a number, not 'a'"),
    (lambda: ll.Adam(clip=inf), "optimizer.clip must be finite"),
    (lambda: ll.AdamW(decay=-1), "optimizer.decay must be at least 0, not -1"),
    (lambda: ll.AdamW(decay="a"), "optimizer.decay must be a number, not 'a'"),
    (lambda: ll.Cosine(peak="a"), "the peak of a learning rate must be a number, not 'a'"),
    (lambda: ll.Cosine(peak=-1), "the peak of a learning rate must be at least 0, not -1"),
    (lambda: ll.Cosine(peak=1e-3, last=nan), "the last of a learning rate must be at least 0, not nan"),
    (lambda: ll.Linear(peak=None), "the peak of a learning rate must be a number, not None"),
    (lambda: ll.WarmUp(peak=1e-3, warm_up="a"), "warm_up must be a whole number, not 'a'"),
    (lambda: ll.WarmUp(peak=1e-3, warm_up=-1), "warm_up must be at least 0, not -1"),
    # tasks and models
    (lambda: ll.tasks.ModuloRecall(modulus="2"), "task.modulus must be a whole number, not '2'"),
    (lambda: ll.tasks.ModuloRecall(modulus=5.0), "task.modulus must be a whole number, not 5.0"),
    (lambda: ll.tasks.ModuloRecall(keys=None), "task.keys must be a whole number, not None"),
    (lambda: ll.tasks.ModuloRecall(keys=10**12), "task.keys = 1000000000000 would need at least 60 TB of memory"),
    (lambda: ll.tasks.ModuloRecall(questions="modulo"), "task.questions must be"),
    (lambda: ll.tasks.Mixture((TASK,)), "two tasks or more"),
    (lambda: ll.tasks.Mixture((TASK, TASK)), "names of their own"),
    (lambda: ll.tasks.Mixture((TASK, 5)), "a list of tasks"),
    (lambda: ll.tasks.Mixture(5), "a list of tasks, not of 5"),
    (
        lambda: ll.tasks.Mixture((ll.tasks.modulo(), ll.tasks.recall()), weights=("a", 1)),
        "task.weights must be a number, not 'a'",
    ),
    (lambda: TASK.sample(0, (1, 2), torch.Generator()), "at least 1, not 0"),
    (lambda: TASK.sample(1, (1, 99), torch.Generator()), "length 99"),
    (lambda: TASK.sample(1, (2, 1), torch.Generator()), "(shortest, longest), not (2, 1)"),
    (lambda: ll.models.lstm(width=0), "model.width must be at least 1, not 0"),
    (lambda: ll.models.lstm(width="8"), "model.width must be a whole number, not '8'"),
    (lambda: ll.models.lstm(width=16.0), "model.width must be a whole number, not 16.0"),
    (lambda: ll.models.transformer(positions="ropes"), "did you mean 'rope'?"),
    (lambda: ll.models.transformer(scores="logn"), "did you mean 'log-n'?"),
    (lambda: ll.models.transformer(heads="2"), "model.heads must be a whole number, not '2'"),
    (lambda: ll.models.transformer(mlp=0.5), "model.mlp must be a whole number, not 0.5"),
    (lambda: ll.models.repeat("2", ll.models.Lstm()), "model.blocks must be a whole number, not '2'"),
    (lambda: ll.models.repeat(10**6, ll.models.Lstm()), "model.blocks must be at most 1,000"),
    (lambda: ll.models.named("a b", ll.models.Lstm()), "letters, digits, - and _, not 'a b'"),
    (lambda: ll.models.named(5, ll.models.Lstm()), "letters, digits, - and _, not '5'"),
    (lambda: module(5), "made by a class or a function, not by 5"),
    (lambda: module("net.py:Net"), "made by a class or a function, not by 'net.py:Net'"),
    (lambda: module(nn.Linear), "name it one of vocabulary"),
    (lambda: module(nn.Embedding, vocabulary=5), "vocabulary"),
    # training
    (lambda: ll.train(5), "what is trained is a Run, as ll.Run makes it, not 5"),
    (lambda: ll.train([RUN]), "what is trained is a Run"),
    (lambda: ll.train(RUN, store="file"), "store 'file' is not writable"),
    (lambda: ll.train(RUN, store="loop"), "a link that leads to itself"),
    (lambda: ll.train(RUN, store=""), "name a folder"),
    (lambda: ll.train(RUN, device="abacus"), "device 'abacus' is not available"),
    (lambda: ll.train(RUN, device=None), "device 'None' is not available"),
    (lambda: ll.train(RUN, precision="fp64"), "did you mean 'fp32'?"),
    (lambda: ll.train_all(RUN), "a list of runs"),
    (lambda: ll.train_all([5]), "a list of runs"),
    (lambda: ll.train_all(["run"]), "a list of runs"),
    (lambda: ll.train_all([RUN], store="file"), "store 'file' is not writable"),
    (lambda: ll.train_all([RUN], workers=0), "workers must be at least 1, not 0"),
    (lambda: ll.train_all([RUN], workers="two"), "workers must be a whole number, not 'two'"),
    (lambda: ll.train_all([RUN], device="abacus"), "device 'abacus' is not available"),
    (lambda: ll.read_plan("nowhere.toml"), "nowhere.toml: No such file"),
    (lambda: ll.read_plan("empty"), "a file is wanted there, not a folder"),
    (lambda: ll.read_plan("loop.toml"), "a link that leads to itself"),
    (lambda: ll.read_plan("plan.toml", "batch=4"), "what is set must be a list of names, like ['batch=4'], not 'batch=4'"),
    (lambda: ll.read_plan("plan.toml", ["batch"]), "write it as key=value"),
    # delay
    (lambda: ll.delay_attention(5), "an nn.Module, not an int"),
    (lambda: ll.delay_attention(nn.Linear), "an nn.Module, not a type"),
    (lambda: ll.delay_attention(nn.Linear(1, 1)), "no softmax attention found"),
    (lambda: ll.delay_attention(layer(), until=0), "until=0 is in the past"),
    (lambda: ll.delay_attention(layer(), until=-1), "until=-1 is in the past"),
    (lambda: ll.delay_attention(layer(), until="soon"), "until must be a whole number of steps or a function"),
    (lambda: ll.delay_attention(layer(), until=1.5), "until must be a whole number of steps or a function"),
    (lambda: ll.delay_attention(layer(), until=True), "until must be a whole number of steps or a function"),
    (lambda: ll.delay_attention(layer(), ["nothing"]), "no part of the model is named 'nothing'"),
    (lambda: ll.delay_attention(layer(), []), "no part is named"),
    (lambda: ll.delay_attention(layer(), 5), "named by a text or a list of them, not by 5"),
    (lambda: ll.delay_attention(layer(), [5]), "named by a text or is a module, not 5"),
    (lambda: ll.delay_attention(layer(), instead="nothing"), "'zeros', 'input' or a function, not 'nothing'"),
    (lambda: ll.delay(layer(), "nothing"), "no part of the model is named 'nothing'"),
    (lambda: ll.delay(5, "self_attn"), "an nn.Module, not an int"),
    (lambda: ll.delay_attention(layer()).watch(5), "an optimizer, not an int"),
    (lambda: ll.delay_attention(layer()).watch(None), "an optimizer, not None"),
    (lambda: ll.Stages(), "there is no stage"),
    (lambda: ll.Stages(5), "a stage is a delay, as ll.delay makes it, not 5"),
    (lambda: ll.register(ll.tasks.Task, "mine", 5), "a class or a function, not 5"),
    (lambda: ll.register(ll.tasks.Task, "modulo-recall", lambda: 5), "register yours under another name"),
    # the content of a run
    (lambda: ll.Run.from_json({}), "not the content of a run"),
    (lambda: ll.Run.from_json(5), "not the content of a run"),
    (lambda: ll.Run.from_json(content(results=99)), "made by another version of lengthlab (results 99, not"),
    (lambda: ll.Run.from_json(content(task=5)), "task must be a task, not 5"),
    (lambda: ll.Run.from_json(content(task={"kind": "nothing"})), "unknown kind 'nothing'"),
    (lambda: ll.Run.from_json(content(task={"kind": "modulo-recall", "x": 1})), "cannot be made of ['x']"),
    (lambda: ll.Run.from_json(content(model={"kind": "a.py:b"}, files=None)), "not the content of a run"),
]


@pytest.mark.parametrize(("call", "told"), CALLS, ids=[told for _, told in CALLS])
def test_a_call_that_cannot_be_meant_is_refused(desk: Path, call: Callable[[], Any], told: str) -> None:
    before = everything(desk)
    with pytest.raises(LabError) as caught:
        call()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything(desk) == before
