"""Fails when torchrun first starts it; when restarted, tells whether it was handed the same store again."""

import os
import sys
from datetime import timedelta

import torch.distributed as dist

store, _, _ = next(dist.rendezvous("env://", timeout=timedelta(seconds=60)))
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    store.set("left by the first attempt", "")
    sys.exit(1)
print("the store of before" if store.check(["left by the first attempt"]) else "the store of its own")
