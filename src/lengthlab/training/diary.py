"""What a run in training leaves behind: log lines, checkpoints on a timer, its failure or its result."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic

from lengthlab.errors import RunFailed
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.evaluation.temperature import settle_temperatures
from lengthlab.software import commit_of_package
from lengthlab.store import Folder
from lengthlab.training.checkpoint import save_checkpoint, save_weights
from lengthlab.training.result import write_result
from lengthlab.training.trainee import Trainee

LOG_STEPS = 50
PROBE_SAMPLES = 200


class Diary:
    """Keeps a run's folder up to date. `before` is how many seconds it had trained until the checkpoint it went on from.

    The timer is the caller's: a run alone is cheap to keep, twenty-six are not.
    """

    def __init__(self, trainee: Trainee, folder: Folder, before: float, probe_steps: int, checkpoint_seconds: float) -> None:
        self.trainee, self.folder = trainee, folder
        self._probe_steps, self._checkpoint_seconds = probe_steps, checkpoint_seconds
        now = monotonic()
        self._began, self._saved = now - before, now
        self._marked = (trainee.step, now)
        self._commit = commit_of_package()  # before the checkout moves on
        folder.trim_log(trainee.step)

    @property
    def seconds(self) -> float:
        """Seconds of training, those before a kill included."""
        return monotonic() - self._began

    def note(self, phase: int, loss: float) -> None:
        """After a step (or several) of this phase: a log line every LOG_STEPS, a checkpoint when one is due."""
        trainee = self.trainee
        last = trainee.clock == trainee.run.steps
        if trainee.step % LOG_STEPS == 0 or last:
            self.folder.append_log(self._line(phase, loss))
        due = monotonic() - self._saved > self._checkpoint_seconds
        if due or last or trainee.run.phase_at(trainee.clock) != phase:
            self.keep()

    def keep(self) -> None:
        """A checkpoint now."""
        save_checkpoint(self.trainee, self.folder, self.seconds)
        self._saved = monotonic()

    def fail(self, failure: RunFailed) -> None:
        note = {"run": self.trainee.run.id, "step": self.trainee.step, "message": str(failure)}
        self.folder.write_json("failure.json", note | {"date": datetime.now(UTC).isoformat(timespec="seconds")})

    def conclude(self) -> None:
        """Measure what was learned and write it down; the result is the last file."""
        trainee, run = self.trainee, self.trainee.run
        seconds = self.seconds
        trainee.check_weights()
        trainee.enter_phase()  # a run that was killed while it was measured has not been in any
        settle_temperatures(trainee.network, run.task, run.lengths[1])
        counts = accuracy(trainee.network, run.task, run.measured_at)
        save_weights(trainee, self.folder)
        write_result(run, self.folder, counts, trainee.mastery.ends, seconds, trainee.device, trainee.precision, self._commit)

    def _line(self, phase: int, loss: float) -> dict[str, object]:
        trainee, run = self.trainee, self.trainee.run
        line: dict[str, object] = {
            "step": trainee.step,
            "phase": phase + 1,
            "loss": loss,
            "lr": run.schedule.phases[phase].rates["rest"],
            "samples_per_second": round(self._pace() * run.batch, 1),
            "seconds": round(self.seconds, 1),
        }
        if trainee.skipped:
            line["skipped"] = trainee.skipped
        if trainee.step % self._probe_steps == 0:
            line["accuracy"] = self._probe()
        return line

    def _pace(self) -> float:
        """Steps per second since the last call."""
        (step, then), now = self._marked, monotonic()
        self._marked = self.trainee.step, now
        return (self.trainee.step - step) / max(1e-9, now - then)

    def _probe(self) -> dict[str, float]:
        """A glance at the training length and at 3 times that, for people to watch. Training never learns of it."""
        run = self.trainee.run
        longest = run.lengths[1]
        lengths = [longest, min(3 * longest, run.task.longest or 3 * longest)]
        counts = accuracy(self.trainee.network, run.task, dict.fromkeys(lengths), PROBE_SAMPLES, seed=1)
        return {str(count.length): count.accuracy for count in counts if count.question == "both"}
