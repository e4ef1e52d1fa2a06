"""What a run in training leaves behind: log lines, checkpoints on a timer, its result."""

from __future__ import annotations

from time import monotonic

from lengthlab.evaluation.accuracy import accuracy
from lengthlab.evaluation.own_words import outcome_counts
from lengthlab.evaluation.temperature import settle_temperatures
from lengthlab.software import commit_of_package
from lengthlab.store import Folder
from lengthlab.store.folder import CHECKPOINTS
from lengthlab.store.rows import Count
from lengthlab.tasks import ALL
from lengthlab.training.checkpoint import save_checkpoint, save_weights
from lengthlab.training.measured import Measured
from lengthlab.training.result import write_result
from lengthlab.training.state import TrainState

LOG_STEPS = 50
PROBE_SAMPLES = 200
PROBE_STEPS = {"cuda": 2_000, "cpu": 500}
FIRST_CHECKPOINT_SECONDS = 2.0
"""After the start, so that a run that is killed again and again gets on; each next one after twice as long …"""
CHECKPOINT_SECONDS = 60.0
"""… and at last this often: keeping the twenty-six runs of the paper takes a GPU two seconds."""


class Recorder:
    """Keeps a run's folder up to date. `before` is how many seconds it had trained until the checkpoint it went on from, `turn`
    which of the two files is not that checkpoint, and so the next to be written.
    """

    def __init__(self, state: TrainState, folder: Folder, before: float, turn: int = 0) -> None:
        self.state, self.folder, self._turn = state, folder, turn
        now = monotonic()
        self._began, self._saved = now - before, now
        self._pause = FIRST_CHECKPOINT_SECONDS
        self._marked = (state.step, now)
        self._noted = 0
        self._commit = commit_of_package()  # before the checkout moves on
        folder.trim_log(state.step)

    @property
    def seconds(self) -> float:
        """Seconds of training, those before a kill included."""
        return monotonic() - self._began

    def note(self, phase: int, loss: float) -> None:
        """After a step (or several) of this phase: a log line every LOG_STEPS, a checkpoint when one is due."""
        state = self.state
        last = state.clock == state.run.steps
        if state.step % LOG_STEPS == 0 or last:
            self.folder.append_log(self._line(phase, loss))
        due = monotonic() - self._saved > self._pause
        if due:
            self._pause = min(CHECKPOINT_SECONDS, 2 * self._pause)
        if due or last or state.run.phase_at(state.clock) != phase:
            self.keep()

    def keep(self) -> None:
        """A checkpoint now, in the place of the one before the last."""
        self.folder.sync_log()  # a run that goes on from it does not write these lines again
        save_checkpoint(self.state, self.folder, self.seconds, CHECKPOINTS[self._turn])
        self._turn = 1 - self._turn
        self._saved = monotonic()

    def conclude(self) -> None:
        """Write down what was learned, and measure it; the result is the last file."""
        state, run = self.state, self.state.run
        seconds = self.seconds
        state.check_weights()
        state.enter_phase()  # a run that was killed while it was measured has not been in any
        settle_temperatures(state.network, run.task, run.trained[1])
        save_weights(state, self.folder)
        counts = self._measure()
        write_result(run, self.folder, counts, state.mastery.ends, seconds, state.device, state.precision, self._commit)

    def _measure(self) -> list[Count]:
        """Length by length, each kept: a run that is killed meanwhile goes on with the next."""
        run, measured = self.state.run, Measured(self.folder)
        for length in run.measured_at:
            if length not in measured.counts:
                network = self.state.network
                measured.add(length, [*accuracy(network, run.task, [length]), *outcome_counts(network, run.task, [length])])
        return [count for length in run.measured_at for count in measured.counts[length]]

    def _line(self, phase: int, loss: float) -> dict[str, object]:
        state, run = self.state, self.state.run
        line: dict[str, object] = {
            "step": state.step,
            "phase": phase + 1,
            "loss": loss,
            "lr": state.rate_of_rest,
            "samples_per_second": round(self._pace() * run.batch, 1),
            "seconds": round(self.seconds, 1),
        }
        if state.skipped:
            line["skipped"] = state.skipped
        if len(state.notes) > self._noted:
            line["notes"] = state.notes[self._noted :]
            self._noted = len(state.notes)
        if state.step % PROBE_STEPS.get(state.device.type, PROBE_STEPS["cpu"]) == 0:
            line["accuracy"] = self._probe()
        return line

    def _pace(self) -> float:
        """Steps per second since the last call."""
        (step, then), now = self._marked, monotonic()
        self._marked = self.state.step, now
        return (self.state.step - step) / max(1e-9, now - then)

    def _probe(self) -> dict[str, float]:
        """A glance at the training length and at 3 times that, or as far as the run is to be measured, for people to watch.
        Training never learns of it.
        """
        run = self.state.run
        longest = run.trained[1]
        lengths = [longest, min(3 * longest, max(longest, *run.measured_at))]
        counts = accuracy(self.state.network, run.task, dict.fromkeys(lengths), PROBE_SAMPLES, seed=1)
        return {str(count.length): count.accuracy for count in counts if count.question == ALL}
