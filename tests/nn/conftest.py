"""Small networks gain nothing from threads, and tests run side by side."""

import torch

torch.set_num_threads(1)
