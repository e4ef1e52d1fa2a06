"""Where the numbers are crunched: which device, and how it is set up while a run has it."""

from __future__ import annotations

import os
import platform
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from lengthlab.errors import LabError

AUTO = "auto"
"""The name of the best device there is."""


def device_named(name: str = AUTO) -> torch.device:
    """The device of that name, after a try that it is really there; `auto` is cuda where there is one, then mps, then cpu.

    >>> device_named("cpu")
    device(type='cpu')
    """
    name = _best() if name == AUTO else str(name)
    if name.startswith("cuda"):
        # The streams of a process share 8 queues to the GPU, unless it is told otherwise before it is first touched.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    try:
        device = torch.device(name)
        torch.rand(1, device=device, generator=torch.Generator(device=device)).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise LabError(
            f"device '{name}' is not available here; cpu always is, cuda and mps where the machine has them; or say auto"
        ) from None
    return device


def _best() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def in_words(device: torch.device, threads: int = 1) -> str:
    """The device as whoever waits for it reads it.

    >>> in_words(torch.device("cpu"), threads=2)
    'cpu, 2 threads'
    """
    if device.type == "cuda":
        number = torch.cuda.current_device() if device.index is None else device.index
        return f"cuda:{number} {torch.cuda.get_device_name(number)}"
    return f"cpu, {threads} thread{'s' if threads > 1 else ''}" if device.type == "cpu" else str(device)


@contextmanager
def settled(device: torch.device) -> Iterator[None]:
    """The settings under which runs are repeatable and small models are fast, whatever the process around them has set; put
    back afterwards.

    One thread: the order of sums does not depend on the machine, and a run beside another does not slow both down a
    hundredfold. Whoever is alone spreads batches over cores instead (`evaluation.cores`). On ARM, oneDNN's recurrence is a slow
    reference: on a Neoverse-N1, a step of a hybrid of width 64 took 78 ms without it and 142 with it. On CUDA, fp32 is not
    TF32, and bf16 products are summed in fp32 throughout.
    """
    with ExitStack() as settings:
        settings.enter_context(_as_new(device))
        if device.type == "cuda":
            settings.enter_context(torch.cuda.device(device))
            settings.enter_context(_full_sums())
            settings.enter_context(_quiet_recurrence())
        if device.type == "cpu":
            settings.enter_context(_one_thread())
            settings.enter_context(_onednn(platform.machine().lower() not in ("aarch64", "arm64")))
        yield


@contextmanager
def _as_new(device: torch.device) -> Iterator[None]:
    """What a user may have set of torch as a new process has it: a run comes out the same here and in a worker."""
    dtype, products = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    exact, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    with ExitStack() as settings:
        settings.enter_context(torch.inference_mode(False))
        settings.enter_context(torch.enable_grad())
        if torch.is_autocast_enabled(device.type):
            settings.enter_context(torch.autocast(device.type, enabled=False))
        if torch.get_default_device().type != "cpu":  # not always: it would make every call of torch slower
            settings.enter_context(torch.device("cpu"))
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
        if exact:  # not always: it imports the compiler, 1.7 seconds and 140 MB
            torch.use_deterministic_algorithms(False)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_float32_matmul_precision(products)
            if exact or torch.are_deterministic_algorithms_enabled():
                torch.use_deterministic_algorithms(exact, warn_only=warns)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _full_sums() -> Iterator[None]:
    """cuDNN's recurrence would round to TF32 without being asked, and split sums of bf16 products would be kept in bf16."""
    products, recurrence = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, recurrence.allow_tf32, products.allow_bf16_reduced_precision_reduction
    products.allow_tf32 = recurrence.allow_tf32 = products.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        products.allow_tf32, recurrence.allow_tf32, products.allow_bf16_reduced_precision_reduction = before


@contextmanager
def _quiet_recurrence() -> Iterator[None]:
    """torch cannot lay the weights of an LSTM in bf16 out as cuDNN has them, and tells the user to do it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
        yield


@contextmanager
def _onednn(enabled: bool) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # setting the flags warns about Intel GPUs, whatever is set
        flags = torch.backends.mkldnn.flags(enabled=enabled)
        flags.__enter__()
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags.__exit__(None, None, None)


def hardware(device: torch.device) -> str:
    """The device in words, for provenance."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} {_processor()}".strip() + f", {os.cpu_count()} cores"


def _processor() -> str:
    """The processor's name, from wherever this system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            named = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "Model"))]
        if not named:  # ARM cores have numbers there; lscpu knows their names
            said = subprocess.run(
                ["lscpu"], capture_output=True, text=True, timeout=10, env=os.environ | {"LC_ALL": "C"}
            ).stdout
            named = [line.split(":", 1)[1].strip() for line in said.splitlines() if line.startswith("Model name")]
    except (OSError, subprocess.SubprocessError):
        named = []
    return named[0] if named else platform.processor()
