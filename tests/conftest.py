"""One thread for every test: small models are slower on two, and tests run side by side."""

import torch

torch.set_num_threads(1)
