"""Two processes that share a batch train what one process trains with the whole of it, before and after the opening."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, distributed, multiprocessing, nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW, Optimizer

from hand_written import WIDTH, Gpt
from lengthlab.errors import LabError
from lengthlab.switch import Delay, delay_attention

STEPS, UNTIL, RAMP, RATE = 6, 2, 2, 0.5
PROCESSES = 2
pytestmark = pytest.mark.skipif(not distributed.is_gloo_available(), reason="needs gloo")

Record = list[dict[str, Any]]
"""By step: is it open, and the gradients and weights of the whole model, by name."""


def model_and_batch() -> tuple[Gpt, Tensor]:
    """In double precision, in which a sum over two processes is that of one but for rounding that no optimizer sees."""
    torch.manual_seed(0)
    model = Gpt().double()
    return model, torch.randn(4, 5, WIDTH, dtype=torch.float64)


def prepare(model: nn.Module, of: nn.Module | None = None) -> tuple[Delay, Optimizer]:
    optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    return delay_attention(of or model, until=UNTIL, ramp=RAMP, rate=RATE).watch(optimizer), optimizer


def train(model: nn.Module, x_BTD: Tensor, later: Delay, optimizer: Optimizer, named: nn.Module) -> Record:
    record = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        (model(x_BTD) - x_BTD.cumsum(1)).square().mean().backward()
        grads = {name: whole(each.grad) for name, each in named.named_parameters() if each.grad is not None}
        is_open = later.is_open
        optimizer.step()
        weights = {name: whole(each.detach()).clone() for name, each in named.named_parameters()}
        record.append({"is_open": is_open, "grads": grads, "weights": weights})
    return record


def whole(value: Tensor) -> Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value.clone()


def alone() -> Record:
    model, x_BTD = model_and_batch()
    return train(model, x_BTD, *prepare(model), model)


def with_ddp(model: Gpt, x_BTD: Tensor) -> Record:
    """Delayed after it was wrapped, as one would who is given a model."""
    wrapped = DistributedDataParallel(model, find_unused_parameters=True)
    return train(wrapped, x_BTD, *prepare(model, wrapped), model)


def with_ddp_around_a_delay(model: Gpt, x_BTD: Tensor) -> Record:
    later, optimizer = prepare(model)
    wrapped = DistributedDataParallel(model, find_unused_parameters=True, gradient_as_bucket_view=True)
    return train(wrapped, x_BTD, later, optimizer, model)


def with_fsdp(model: Gpt, x_BTD: Tensor) -> Record:
    """Delayed before it is sharded; the optimizer comes after, as FSDP wants it."""
    later = delay_attention(model, until=UNTIL, ramp=RAMP, rate=RATE)
    shard(model)
    optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    return train(model, x_BTD, later.watch(optimizer), optimizer, model)


def with_fsdp_before_a_delay(model: Gpt, x_BTD: Tensor) -> Record:
    shard(model)
    return train(model, x_BTD, *prepare(model), model)


def shard(model: Gpt) -> None:
    """Attention by itself in one block, and with the rest of it in the other."""
    fully_shard(model.h[0].attn)
    for part in (*model.h, model):
        fully_shard(part)


def refusals(model: Gpt, x_BTD: Tensor) -> list[str]:
    """What is said where DDP would wait for gradients that do not come."""
    return [
        refusal(lambda: delay_attention(DistributedDataParallel(model))),
        refusal(lambda: delay_attention(DistributedDataParallel(model, static_graph=True))),
        refusal(lambda: wrapped_later(model)(x_BTD)),
    ]


def wrapped_later(model: Gpt) -> DistributedDataParallel:
    later = delay_attention(model)
    wrapped = DistributedDataParallel(model)
    with torch.no_grad():
        wrapped(torch.zeros(1, 1, WIDTH, dtype=torch.float64))  # an evaluation is not refused
    wrapped.later = later
    return wrapped


def refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except LabError as error:
        return str(error)
    return "nothing"


def fsdp_1(model: Gpt, x_BTD: Tensor) -> list[str]:
    """What is said where FSDP1 would move what is off: wrapped before, around a closed model, and in an optimizer."""
    said = []
    for keeps in (True, False):
        wrapped = flat(copy.deepcopy(model), keeps)
        said.append(refusal(partial(delay_attention, wrapped)))
        closed = copy.deepcopy(model)
        later = delay_attention(closed)
        around = flat(closed, keeps)
        optimizer = AdamW(around.parameters())  # before the forward, which is left half-way
        said.append(refusal(partial(around, x_BTD)))
        said.append(refusal(partial(later.watch, optimizer)))
    return said


def flat(model: Gpt, keeps: bool) -> FullyShardedDataParallel:
    return FullyShardedDataParallel(model, use_orig_params=keeps, device_id=torch.device("cpu"))


def with_metrics(model: Gpt, x_BTD: Tensor) -> dict[str, list[bool]]:
    """Each process finds something else, the first one only the second time."""
    rank = distributed.get_rank()
    found = {}
    for way in ("alone", "ddp", "compiled ddp", "fsdp"):
        mine = copy.deepcopy(model)
        later = delay_attention(mine, until=lambda metrics: metrics["accuracy"] > 0.9)
        if way == "fsdp":
            shard(mine)
        wrapped = DistributedDataParallel(mine, find_unused_parameters=True) if "ddp" in way else mine
        if way == "compiled ddp":
            wrapped = torch.compile(wrapped, backend="eager")
        found[way] = [later.is_open]
        for accuracies in ((0.5, 1.0), (1.0, 0.5)):
            later.observe({"accuracy": accuracies[rank]})
            found[way].append(later.is_open)
    return found


def state_of_ddp(model: Gpt, x_BTD: Tensor) -> int:
    """A state moves into a model that holds a DDP, and out of it."""
    plain = delay_attention(copy.deepcopy(model), until=9)
    plain.step()
    holder = nn.ModuleDict({"model": DistributedDataParallel(model, find_unused_parameters=True)})
    later = delay_attention(holder, modules=["*.attn"], until=9)
    later.load_state_dict(plain.state_dict())
    plain.load_state_dict(later.state_dict())
    return later.steps


class Experts(nn.Module):
    """Weighs two maps by the softmax of a router."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.router, self.maps = nn.Linear(width, 2), nn.ModuleList(nn.Linear(width, width) for _ in range(2))

    def forward(self, x_BTD: Tensor) -> Tensor:
        weight_BTE = self.router(x_BTD).softmax(-1)
        return sum((weight_BTE[..., each, None] * part(x_BTD) for each, part in enumerate(self.maps)), torch.zeros(()))


class Sharded(nn.Module):
    """Its root has an embedding and a head, so that it has shards of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.experts, self.head = nn.Embedding(32, 16), Experts(16), nn.Linear(16, 32)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        x_BTD = self.layer(self.embedding(tokens_BT))
        logits_BTV: Tensor = self.head(x_BTD + self.experts(x_BTD))
        return logits_BTV


def shards_at_the_root(model: Gpt, x_BTD: Tensor) -> dict[str, list[str]]:
    """What is off in a model that is sharded before, and after: and it still runs, trains and can be checked."""
    tokens_BT = torch.arange(10).view(2, 5)
    found = {}
    for order in ("sharded first", "sharded later"):
        torch.manual_seed(0)
        whole = Sharded()
        later = None if order == "sharded first" else delay_attention(whole, batch=tokens_BT)
        fully_shard(whole.layer)
        fully_shard(whole)
        later = later or delay_attention(whole, batch=tokens_BT)
        whole(tokens_BT).square().mean().backward()
        later.check(tokens_BT)
        whole(tokens_BT).square().mean().backward()
        found[order] = [site.name for site in later.sites]
    return found


JOBS = (
    with_ddp,
    with_ddp_around_a_delay,
    with_fsdp,
    with_fsdp_before_a_delay,
    refusals,
    fsdp_1,
    with_metrics,
    state_of_ddp,
    shards_at_the_root,
)


def work(rank: int, folder: Path) -> None:
    """One of the processes, with its half of the batch: does all the jobs, as starting processes takes longest."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
    torch.set_num_threads(1)
    where = f"file://{folder / 'meeting'}"
    distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=PROCESSES)
    found = {}
    for job in JOBS:
        model, x_BTD = model_and_batch()
        found[job.__name__] = job(model, x_BTD.chunk(PROCESSES)[rank])
    torch.save(found, folder / f"{rank}.pt")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each process found, by job."""
    folder = tmp_path_factory.mktemp("processes")
    multiprocessing.spawn(work, (folder,), PROCESSES)
    return [torch.load(folder / f"{rank}.pt") for rank in range(PROCESSES)]


TRAINING = [job.__name__ for job in JOBS[:4]]
every_way = pytest.mark.parametrize("way", TRAINING)


def is_delayed(name: str) -> bool:
    return ".attn." in name


@every_way
def test_processes_have_the_gradients_and_weights_of_one(done: list[dict[str, Any]], way: str) -> None:
    for found in done:
        for mine, wanted in zip(found[way], alone(), strict=True):
            assert mine["is_open"] == wanted["is_open"]
            assert mine["grads"].keys() == wanted["grads"].keys()
            for kind in ("grads", "weights"):
                for name, value in wanted[kind].items():
                    assert torch.allclose(mine[kind][name], value, rtol=1e-6, atol=1e-9), f"{kind} of {name}"


@every_way
def test_while_off_nothing_of_it_has_a_gradient_or_moves_by_one_bit(done: list[dict[str, Any]], way: str) -> None:
    start = {name: value for name, value in model_and_batch()[0].state_dict().items() if is_delayed(name)}
    for found in done:
        for step, entry in enumerate(found[way]):
            assert entry["is_open"] == (step >= UNTIL)
            assert any(map(is_delayed, entry["grads"])) == entry["is_open"]
            # The first step after the opening has a weight of zero: nothing but weight decay moves it.
            unmoved = [torch.equal(entry["weights"][name], value) for name, value in start.items()]
            assert all(unmoved) if step < UNTIL else not any(unmoved)


def test_all_processes_have_the_same_weights(done: list[dict[str, Any]]) -> None:
    one, other = done
    for way in TRAINING:
        for mine, theirs in zip(one[way], other[way], strict=True):
            assert all(torch.equal(mine["weights"][name], theirs["weights"][name]) for name in mine["weights"])


def test_ddp_that_waits_for_all_gradients_is_refused(done: list[dict[str, Any]]) -> None:
    text = "DistributedDataParallel needs find_unused_parameters=True, and no static_graph=True, while parts are off"
    assert [found["refusals"] for found in done] == [[text] * 3] * 2


def test_fsdp_1_is_refused_with_what_to_do_whenever_it_comes(done: list[dict[str, Any]]) -> None:
    for found in done:
        assert len(found["fsdp_1"]) == 6
        assert all("shard with fully_shard (FSDP2)" in said for said in found["fsdp_1"]), [
            said[:60] for said in found["fsdp_1"]
        ]


def test_processes_that_train_one_model_open_together_and_others_apart(done: list[dict[str, Any]]) -> None:
    one, other = (found["with_metrics"] for found in done)
    assert (one["alone"], other["alone"]) == ([False, False, True], [False, True, True])
    for way in ("ddp", "compiled ddp", "fsdp"):
        assert one[way] == other[way] == [False, False, True], way


def test_a_state_moves_across_ddp(done: list[dict[str, Any]]) -> None:
    assert [found["state_of_ddp"] for found in done] == [1, 1]


def test_a_model_whose_root_is_sharded_runs_after_a_trial_and_its_router_stays_on(done: list[dict[str, Any]]) -> None:
    for found in done:
        assert set(found["shards_at_the_root"]) == {"sharded first", "sharded later"}
        assert all(off == ["layer.self_attn"] for off in found["shards_at_the_root"].values())
