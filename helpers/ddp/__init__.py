"""A small language model trained with DistributedDataParallel, from a cell or under torchrun.

`helpers.ranks.training.train` is the same program as a function for `run()`; `python -m helpers.ddp` is its
command line. Both call `helpers.ddp.training.train`.
"""
