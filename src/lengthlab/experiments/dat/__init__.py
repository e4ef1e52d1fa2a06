"""The paper of delayed attention training, as runs."""

from lengthlab.experiments.dat.profile import PROFILES as PROFILES
from lengthlab.experiments.dat.profile import Profile as Profile
from lengthlab.experiments.dat.trials import dat as dat
from lengthlab.experiments.dat.trials import trials as trials
