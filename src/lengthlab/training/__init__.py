"""Training: `train` has one run, the engine many (engine.py). A step is made in state.py from the data of data.py, one by one
or captured (stepper.py); slot.py has a run's folder, recorder.py what it leaves there.
"""

from lengthlab.training.engine import train as train
from lengthlab.training.other_task import measure_on as measure_on
from lengthlab.training.result import Result as Result
from lengthlab.training.result import measure as measure
from lengthlab.training.result import read_result as read_result
