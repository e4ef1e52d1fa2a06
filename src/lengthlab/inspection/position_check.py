"""Whether a model can place the tokens of a task: how far its tables of positions reach, and how many ids a token may have.

Shapes: B samples, T tokens, K ids of a token, where it has several.
"""

from __future__ import annotations

from torch import nn

from lengthlab.errors import require
from lengthlab.evaluation.accuracy import evaluation_set
from lengthlab.evaluation.samples import USUAL, samples_at
from lengthlab.models.attention.positions import Untouched
from lengthlab.models.attention.randomized import RandomizedPositions
from lengthlab.models.attention.softmax import _Attention
from lengthlab.models.model import position_limit, token_limit
from lengthlab.models.position_table import PositionTable
from lengthlab.spec.run import Run
from lengthlab.tasks import Batch
from lengthlab.tasks.coupling import Coupled


def check_positions(run: Run, longest: Batch, far: int) -> None:
    """Refuse what would go wrong at the first step, or at length `far`, the greatest of a run, of which `longest` has a sample.
    Tables end somewhere, ours too.
    """
    _check_number(run, longest)
    if longest.position_BT is None:
        _check_tokens(run, longest.tokens_BT.shape[1] - 1, far)
    else:
        _check_ids(run, max(_largest(run), int(longest.position_BT.max())), far)


def _check_number(run: Run, longest: Batch) -> None:
    """As many ids a token as there are tables of vectors, and one only where attention goes by it."""
    position_BT = longest.position_BT
    several = position_BT is not None and position_BT.dim() == 3
    ids = position_BT.shape[2] if position_BT is not None and several else 1
    model, modules = f"model '{run.model.name}'", tuple(run.blueprint.modules())
    has = f"a token of task '{run.task.name}' has {ids} position id{'s' * (ids > 1)}"
    for table in (module for module in modules if isinstance(module, PositionTable)):
        told = f"{model} has {table.tables} tables of positions (model.position_ids), and {has}: give it tables = {ids}"
        require(table.tables in (1, ids), told)
    if position_BT is None:
        return
    randomized = any(isinstance(module, RandomizedPositions) for module in modules)
    own = f"{model}: randomized positions are drawn, but task '{run.task.name}' has ids of its own: take other positions"
    require(not randomized, own)
    placing = any(isinstance(module, _Attention) and not isinstance(module.positions, Untouched) for module in modules)
    told = f"{model}: {has}, which vectors at the embedding can take (model.position_ids) and attention cannot"
    require(not (several and placing), f"{told}: give it positions none")


def unread_positions(run: Run, longest: Batch) -> str:
    """Where a task says how its tokens stand and no part of a model of ours goes by it, in words: it is trained all the same,
    as what it is without.

    >>> import torch, lengthlab as ll
    >>> task, model = ll.tasks.Addition(positions="coupled"), ll.models.t5_decoder(width=8, blocks=1, heads=2, position_ids=0)
    >>> run = ll.Run(task, model, ll.end_to_end(5), lengths=(1, 2), batch=4)
    >>> unread_positions(run, task.draw(torch.tensor([2]), torch.Generator()))
    "task 'addition' has position ids, and nothing in model 't5-decoder' reads them: take position_ids or positions that do"
    """
    modules = tuple(run.blueprint.modules())
    placing = (isinstance(each, _Attention) and not isinstance(each.positions, Untouched) for each in modules)
    if longest.position_BT is None or any(placing) or any(isinstance(each, PositionTable) for each in modules):
        return ""
    task, model = f"task '{run.task.name}'", f"model '{run.model.name}'"
    return f"{task} has position ids, and nothing in {model} reads them: take position_ids or positions that do"


def _largest(run: Run) -> int:
    """The largest id that training draws sooner or later, as far as the task says."""
    task = run.task
    return task.ids - 1 if isinstance(task, Coupled) and task.placed and (task.random_start or not task.start) else 0


def _check_ids(run: Run, largest: int, far: int) -> None:
    limit = position_limit(run.blueprint)
    raised = f"raise {_named(run.blueprint, limit)} to {largest + 1}"
    takes = f"task '{run.task.name}', measured to length {far}, takes id {largest}"
    told = f"model '{run.model.name}': its table has {limit} position ids, and {takes}: {raised}, or take fewer"
    require(limit is None or largest < limit, told)


def _check_tokens(run: Run, tokens: int, far: int) -> None:
    """Where samples of a length have unequally many tokens, by those that it will be measured on."""
    limit = token_limit(run.blueprint)
    if limit is not None and tokens <= limit and run.task.tokens(far) is None:
        drawn = evaluation_set(run.task, far, samples_at(USUAL, run.task, far))
        tokens = max(tokens, *(batch.tokens_BT.shape[1] - 1 for batch in drawn))
    told = f"its positions end at {limit} tokens, and length {far}, where it is to be measured, has {tokens}"
    raised = f"raise {_named(run.blueprint, limit)}, or measure less far"
    require(limit is None or tokens <= limit, f"model '{run.model.name}': {told}: {raised}")


def _named(network: nn.Module, limit: int | None) -> str:
    """What a user has written a limit in."""
    at_embedding = any(isinstance(module, PositionTable) and module.limit == limit for module in network.modules())
    return "model.position_ids" if at_embedding else "the limit of its positions"
