"""One rank's view of a job of hundreds, with a process group that only pretends, as if the others were there.

What torch decides is real: which collectives it calls, in which order, of which size, and which piece of each
tensor is this rank's. Values and times are not.
"""

import warnings

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.counting.volume import Call, Volume
from helpers.llama.blocks import SMALL, LlamaBlocks
from helpers.models import LLAMA3_8B
from helpers.ranks.zero import state_of, storage_bytes
from helpers.ranks.zero_by_hand import ZeroByHand


def pretend_to_be_one_of(ranks: int) -> None:
    """Replace the process group by one of `ranks` ranks that sends nothing; this one is rank 0."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


def sharded_steps(rank: int, world_size: int, pretend: int) -> dict[str, dict]:
    """Two steps of Llama 3 8B in BF16, sharded over `pretend` ranks by FSDP2, without the update.

    One with all blocks and the root "resharded" after the forward pass, one with all "kept". The tensors have
    shapes and no data. Of each: "calls" (helpers.counting.volume.Call); "gathered", the most numbers of gathered
    parameters at any time; "copied", the most that lie in a gather's buffer and in the copy that FSDP2 makes of it.
    """
    warnings.filterwarnings("ignore", category=UserWarning)
    pretend_to_be_one_of(pretend)
    # Cutting a tensor in 512 is cheap on "meta" and slow for fake tensors, so it comes first.
    with torch.device("meta"):
        model = LlamaBlocks(LLAMA3_8B, dtype=torch.bfloat16, seed=None)
    mesh = init_device_mesh("cpu", (pretend,))
    for part in [*model.layers, model]:
        fully_shard(part, mesh=mesh)
    seen = {}
    with FakeTensorMode(allow_non_fake_inputs=True):
        model.to_empty(device="cpu")
        for name, reshard in {"resharded": True, "kept": False}.items():
            model.set_reshard_after_forward(reshard)
            with CopiesOut() as copies:
                calls = _calls(model)
            most = max(c.seen + c.numbers for c in calls if c.name == "all-gather")
            seen[name] = {"calls": calls, "gathered": most, "copied": copies.most}
    return seen


class CopiesOut(TorchDispatchMode):
    """A context that notes in `most` how many numbers a gather and the copy of it hold, the buffer's padding too.

    Raises RuntimeError at its end where nothing was copied out, as torch may call it otherwise one day.
    """

    most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function._schema.name == "fsdp::split_with_sizes_copy":
            both = (args[0], *kwargs["out"])
            self.most = max(self.most, sum(t.numel() for t in both))
        return function(*args, **(kwargs or {}))

    def __exit__(self, kind, error, trace):
        super().__exit__(kind, error, trace)
        if error is None and not self.most:
            raise RuntimeError("no gather was copied out of its buffer")


def _calls(model: LlamaBlocks) -> list[Call]:
    def gathered() -> int:
        whole = (p for p in model.parameters() if not isinstance(p, DTensor))
        return sum(p.numel() for p in whole)

    model.zero_grad()
    with Volume(look=gathered) as volume:
        volume.phase = "forward"
        logits = model(torch.zeros(2, dtype=torch.int64))
        volume.phase = "backward"
        logits.sum().backward()
    return volume.calls


def kept(
    rank: int, world_size: int, pretend: list[int | None]
) -> dict[tuple[int, int], dict[str, int]]:
    """Bytes that one of so many ranks keeps of real tensors, by the number of ranks and the stage of ZeRO.

    pretend: numbers of ranks; None is as many as there are, so it comes first.

    The small model is in BF16; AdamW and its copy of the parameters are in FP32 (helpers.ranks.zero_by_hand).
    Counted after a backward pass and before the update: weights, gradients, the copy and both moments. Left
    out: AdamW's counters of steps, and what a collective copies on its way.
    """
    found = {}
    for ranks in pretend:
        if ranks is not None:
            pretend_to_be_one_of(ranks)
        for stage in (1, 2):
            found[ranks or world_size, stage] = _kept(stage)
    return found


def _kept(stage: int) -> dict[str, int]:
    model = LlamaBlocks(SMALL, scale=64, dtype=torch.bfloat16)
    update = ZeroByHand(model, stage, lr=0.01, dtype=torch.float32)
    tokens = torch.arange(16)
    model(tokens).sum().backward()
    update.step()  # AdamW makes its state in the first step
    update.zero_grad()
    model(tokens).sum().backward()
    gradients = [p.grad for p in model.parameters()] + update.reduced
    return {
        "weights": storage_bytes(model.parameters()),
        "gradients": storage_bytes(gradients),
        "master weights": storage_bytes(update.mine),
        "moments": storage_bytes(state_of(update)),
    }
