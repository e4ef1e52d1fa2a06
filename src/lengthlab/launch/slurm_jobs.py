"""Packs of runs as jobs of Slurm, by submitit: an array of them, each with a core, and with a GPU where it is trained on one.

A job whose time is over is told so before, stops after the step under way, keeps what was learned, gives its runs back and puts
itself into the queue again. What a job has to say it writes into the store, as JSON: submitit's own answers are pickles, and
are not opened here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from time import sleep
from typing import Any

from lengthlab.errors import LabError, cut, require
from lengthlab.launch.in_process import Tell
from lengthlab.launch.pack import Pack, train_pack
from lengthlab.store import Store
from lengthlab.store.lease import SECONDS, heard
from lengthlab.store.place import FolderPlace, Read, Replace

JOBS = ".jobs"
"""The folder in a store that submitit keeps its files in."""
TIMES = 1000
"""So often a job may be put into the queue again because its time was over."""
WAIT_SECONDS = 1.0


@dataclass(frozen=True)
class SlurmCluster:
    """`SlurmCluster(minutes=60, options=("account=mine",))`: jobs of so many minutes, with any option of sbatch's besides.

    `pack`: so many runs are one job, side by side on a GPU or one after the other. `executor` is submitit's: `local` has jobs
    as processes of this machine.
    """

    minutes: int = 60
    pack: int = 1
    options: tuple[str, ...] = ()
    lease: float = SECONDS
    executor: str = "slurm"

    def connect(self) -> str:
        _submitit()
        self._parameters("cpu")
        there = self.executor != "slurm" or (shutil.which("sbatch") and shutil.which("srun"))
        require(bool(there), "there is no Slurm here: sbatch and srun are not found; launch from a machine that has them")
        return "Slurm" if self.executor == "slurm" else f"submitit, {self.executor}"

    def device(self, named: str) -> str:
        require(named in ("auto", "cpu", "cuda"), f"Slurm chooses the GPU: --device is cpu or cuda, not '{cut(named)}'")
        return "cpu" if named == "auto" else named  # what jobs will find is not known here

    def number_of_packs(self, runs: int, device: str) -> int:
        return ceil(runs / self.pack)

    def train(self, packs: Sequence[Pack], tell: Tell) -> dict[str, str]:
        errors: dict[str, str] = {}
        jobs = self._submit(packs) if packs else []
        waiting = dict(zip((pack.id for pack in packs), zip(packs, jobs, strict=True), strict=True))
        try:
            while waiting:
                for pack, job in [each for each in waiting.values() if each[1].done()]:
                    del waiting[pack.id]
                    errors |= _what_became(pack, job)
                tell(errors)
                sleep(WAIT_SECONDS if waiting else 0.0)
        except KeyboardInterrupt:
            for _, job in waiting.values():
                with suppress(Exception):
                    job.cancel()
            raise
        return errors

    def _submit(self, packs: Sequence[Pack]) -> list[Any]:
        folder = Path(packs[0].store) / JOBS
        folder.mkdir(mode=0o700, exist_ok=True)  # who can write here, is who has code run
        executor = _submitit().AutoExecutor(folder=folder / "%j", cluster=self.executor, slurm_max_num_timeout=TIMES)
        try:
            executor.update_parameters(**self._parameters(packs[0].device))
            return list(executor.map_array(Job(), packs))
        except Exception as error:  # submitit passes on what sbatch said
            raise LabError(f"Slurm takes no job: {cut(str(error), 500)}") from None

    def _parameters(self, device: str) -> dict[str, Any]:
        given = dict(option.partition("=")[::2] for option in self.options)
        wrong = [option for option in self.options if not option.partition("=")[0].replace("-", "_").isidentifier()]
        require(not wrong, f"an option of sbatch's is written NAME=VALUE, as in account=mine, not '{cut(', '.join(wrong))}'")
        common = {"name": "lengthlab", "timeout_min": self.minutes, "cpus_per_task": 1, "nodes": 1, "tasks_per_node": 1}
        gpu = {"gpus_per_node": 1} if device != "cpu" else {}
        return common | gpu | ({"slurm_additional_parameters": given} if given else {})


class Job:
    """What a job does: a function that can be started again (`checkpoint`)."""

    def __call__(self, pack: Pack) -> None:
        number = signal.Signals[f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', 'USR2')}"]
        again, asked = signal.getsignal(number), []

        def stop(number: int, frame: object) -> None:
            asked.append(number)
            signal.raise_signal(signal.SIGINT)  # the end of a step is waited for, see training/interrupt.py

        signal.signal(number, stop)
        try:
            answer: dict[str, Any] = {"errors": train_pack(pack)}
        except LabError as error:
            answer = {"unfit": str(error)}
        except KeyboardInterrupt:  # before it had begun
            answer = {"errors": {}}
        if asked and _left(pack, answer.get("errors", {})) and callable(again):
            again(number, None)  # submitit's: asks `checkpoint`, and Slurm to queue the job again; it does not come back
        FolderPlace(pack.store).do(Replace(_answer_of(pack), json.dumps(answer).encode()))

    def checkpoint(self, pack: Pack) -> Any:
        """The same again: the store knows how far it came."""
        return _submitit().helpers.DelayedSubmission(self, pack)


def _answer_of(pack: Pack) -> str:
    return f"{JOBS}/{pack.id}.json"


def _left(pack: Pack, errors: Mapping[str, str]) -> list[str]:
    return [run for run in pack.runs if run not in errors and not Store(pack.store).folder(run).finished]


def _what_became(pack: Pack, job: Any) -> dict[str, str]:
    """Why runs of a job that is over came to nothing. A machine that cannot train ends everything."""
    answer = heard(FolderPlace(pack.store).do(Read(_answer_of(pack))))
    require("unfit" not in answer, cut(str(answer.get("unfit")), 500))
    said = answer.get("errors")
    errors = {run: str(why) for run, why in said.items()} if isinstance(said, dict) else {}
    why = f"job {job.job_id} ended ({job.state}) before the run did; what it said: {job.paths.stderr}"
    return errors | dict.fromkeys(_left(pack, errors), why)


def _submitit() -> Any:
    try:
        import submitit
    except ImportError:
        raise LabError("launching on Slurm needs submitit: pip install 'lengthlab[slurm]'") from None
    return submitit
