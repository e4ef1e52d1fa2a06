"""Why a finished run goes as far as it does, looked into and kept beside it."""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.device import AUTO, device_named, settled
from lengthlab.errors import refuse_exit, require
from lengthlab.inspection.why.examination import Told, examine
from lengthlab.store import Folder
from lengthlab.store.diagnosis import Diagnosis, read_diagnosis, write_diagnosis
from lengthlab.training.result import read_result


def diagnose(
    folder: Folder,
    lengths: Sequence[int] = (),
    device: str = AUTO,
    trust: bool = False,
    anew: bool = False,
    told: Told = lambda text: None,
) -> Diagnosis:
    """What is kept of a run, or measured now and kept: at the lengths that it was measured at, or at these. `anew`: also where
    something is kept. `told` is called with a few words before each part.
    """
    with folder.lock(), refuse_exit():
        require(folder.finished, f"run {folder.id} is not finished: train it first")
        kept = None if anew or lengths else read_diagnosis(folder)
        if kept is not None:
            return kept
        result = read_result(folder, trust)
        run, place = result.run, device_named(device)
        for length in lengths:
            run.task.check_length(length)
        chosen = lengths or [count.length for count in result.counts]
        with settled(place):
            network = result.network().to(place)
            found = examine(network, run.task, run.trained, chosen, result.counts, folder.id, run.model.name, told)
        write_diagnosis(folder, found)
        return found
