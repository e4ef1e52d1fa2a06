"""Where runs are placed: in processes of this machine (local.py), each of them a worker (worker.py)."""

from lengthlab.launch.local import Outcome as Outcome
from lengthlab.launch.local import train_all as train_all
