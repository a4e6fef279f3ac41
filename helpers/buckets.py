"""Which parameters share a bucket: torch's own assignment, asked with tensors that hold no data."""

import torch
import torch.distributed as dist

MIB = 2**20


Shapes = list[tuple[str, tuple[int, ...]]]


def bucket_places(
    arrived: Shapes, dtype: torch.dtype = torch.bfloat16, cap_mb: float | None = None
) -> tuple[list[int], list[list[int]]]:
    """Bytes of every bucket that DDP makes of these parameters, and which parameters are in it.

    arrived: names and shapes in the order in which the gradients arrive, since that is what DDP arranges its
    buckets by after the first step; it asks the same function of torch. Places count in that order, and
    buckets come in the order in which they are sent. cap_mb: bucket_cap_mb in MiB; None is DDP's default, 25
    with a first bucket of 1. A tensor is never cut, so a bucket may be larger.
    Raises ValueError for cap_mb of 0 or less.
    """
    if cap_mb is not None and not cap_mb > 0:
        raise ValueError(f"cap_mb={cap_mb}: expected MiB, above 0, or None for the default")
    tensors = [torch.empty(shape, dtype=dtype, device="meta") for _, shape in arrived]
    caps = [MIB, 25 * MIB] if cap_mb is None else [int(cap_mb * MIB)]
    buckets, _ = dist._compute_bucket_assignment_by_size(tensors, caps)
    sizes = [sum(tensors[i].numel() * tensors[i].element_size() for i in bucket) for bucket in buckets]
    return sizes, [list(bucket) for bucket in buckets]


def bucket_bytes(
    arrived: Shapes, dtype: torch.dtype = torch.bfloat16, cap_mb: float | None = None
) -> list[int]:
    """Bytes of every bucket that DDP makes of these parameters, in the order in which they are sent."""
    return bucket_places(arrived, dtype, cap_mb)[0]
