"""Learning: the reference loop (`train`), and many runs side by side (`train_all`)."""

from lengthlab.training.crew import Outcome as Outcome
from lengthlab.training.crew import train_all as train_all
from lengthlab.training.reference import train as train
from lengthlab.training.result import Result as Result
from lengthlab.training.result import measure as measure
from lengthlab.training.result import read_result as read_result
