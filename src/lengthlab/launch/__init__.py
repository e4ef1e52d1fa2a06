"""Where runs are placed (local.py): in this process (in_process.py) or in others (processes.py), each of them a worker
(worker.py), or on a cluster (cluster.py) of Ray's (ray_tasks.py) or Slurm's (slurm_jobs.py); what is shown meanwhile
(progress.py, table.py).
"""

from lengthlab.launch.local import Outcome as Outcome
from lengthlab.launch.local import train as train
from lengthlab.launch.local import train_all as train_all
from lengthlab.launch.local import try_all as try_all
