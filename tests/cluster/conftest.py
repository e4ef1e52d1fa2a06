"""Nodes, tasks and jobs are processes that start elsewhere: what they import is named by whole paths."""

import os

os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["LENGTHLAB_TEST_SLOW"] = "0.5"  # of what is drawn on nodes and in jobs, see plans.py
