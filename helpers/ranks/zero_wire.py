"""What only the tests of ZeRO run: bytes on the wire, and whether the pieces do what they say."""

import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from helpers.counting.volume import Volume, passes
from helpers.llama.blocks import SMALL, LlamaBlocks
from helpers.processes.rank import device
from helpers.ranks.on_the_wire import carried
from helpers.ranks.zero import SCALE, WAYS, TrueReduceScatter, tokens, train_step
from helpers.ranks.zero_by_hand import ZeroByHand, reduce_scatter, true_reduce_scatter


def step_bytes(
    rank: int, world_size: int, ways: list[tuple[str, bool]], scale: int
) -> list[int]:
    """Bytes on the loopback interface in the third step of each way, all ranks together.

    ways: a name of helpers.ranks.zero.WAYS, and whether its reduce-scatter is our own, which moves no more
    than it must, instead of gloo's. scale: the model's widths are divided by this. Only meaningful in a private
    network.
    """
    warnings.filterwarnings("ignore", category=UserWarning)
    return [_step_bytes(rank, way, own, scale) for way, own in ways]


def _step_bytes(rank: int, way: str, own_reduce_scatter: bool, scale: int) -> int:
    model = LlamaBlocks(SMALL, scale=scale).to(device())
    called, update = WAYS[way](model, own_reduce_scatter)
    for step in range(2):  # in the second DDP arranges its buckets
        train_step(called, model, update, tokens(rank, step))
    return carried(lambda: train_step(called, model, update, tokens(rank, 2)))


def parts(rank: int, world_size: int) -> dict:
    """What the pieces of the chapter do, on this rank.

    "scattered": a vector of integers of this rank, and its reduce-scatters: torch's, our own, and our own's
    average times the number of ranks. "gradients":
    of one step of FSDP2 with torch's reduce-scatter and with ours, this rank's, flat. "refused": what was
    said to a vector that cannot be cut, to gradients that come twice, to what TrueReduceScatter does not do, and
    to the counter's unknown. "added": what two backward passes leave in stage 1, and then zero_grad(). "accumulated":
    passes of four micro-batches of FSDP2, reducing in each, and in the last only. "on a 2D mesh": its collectives.
    """
    warnings.filterwarnings("ignore", category=UserWarning)
    vector = torch.arange(8 * world_size, dtype=torch.float64) * (rank + 1) ** 2
    both = [reduce_scatter(vector), true_reduce_scatter(vector)]
    own, average = TrueReduceScatter(), torch.empty_like(both[0])
    ask = dict(output_tensor=average, input_tensor=vector, group=dist.group.WORLD)
    own(**ask, op=dist.ReduceOp.AVG)
    gradients = []
    for ours in (False, True):
        model, update = WAYS["FSDP2, resharded"](LlamaBlocks(SMALL, scale=SCALE), ours)
        train_step(model, model, update, tokens(rank, 0))
        local = [p.grad.to_local().flatten() for p in model.parameters()]
        gradients.append(torch.cat(local))
    odd = nn.Linear(world_size + 1, 1, bias=False)
    norms = [p.grad for p in model.parameters()]
    refused = {
        "cut": lambda: ZeroByHand(odd, stage=1, lr=0.1),
        "twice": lambda: _add_up(2),
        "no zero_grad": lambda: _add_up(2, step=True),
        "maximum": lambda: own(**ask, op=dist.ReduceOp.MAX),
        "no waiting": lambda: own(**ask, op=dist.ReduceOp.SUM, async_op=True),
        "full_tensor": lambda: _counted(model.norm.full_tensor),
        "total norm": lambda: _counted(
            lambda: nn.utils.get_total_norm(norms).full_tensor()
        ),
        "clipping": lambda: _counted(
            lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        ),
    }
    said = {name: _refusal(call) for name, call in refused.items()}
    scattered = [each.tolist() for each in (vector, *both, average * world_size)]
    return {
        "scattered": scattered,
        "gradients": gradients,
        "refused": said,
        "added": _add_up(1),
        "accumulated": [_accumulate(rank, each) for each in (True, False)],
        "on a 2D mesh": _on_a_2d_mesh(rank, world_size),
    }


def _add_up(stage: int, step: bool = False) -> tuple[list[float], bool]:
    model = nn.Linear(dist.get_world_size(), 1, bias=False).to(device())
    update = ZeroByHand(model, stage, lr=0.1)
    for micro in (1.0, 2.0):
        model(torch.full_like(model.weight, micro)).sum().backward()
        if step:
            update.step()
    gradient = model.weight.grad.flatten().tolist()
    update.zero_grad()
    return gradient, model.weight.grad is None


def _accumulate(rank: int, reduce_each: bool) -> dict:
    model, _ = WAYS["FSDP2, resharded"](LlamaBlocks(SMALL, scale=SCALE), False)
    with Volume() as volume:
        for micro in range(4):
            model.set_requires_gradient_sync(reduce_each or micro == 3)
            model(tokens(rank, micro)[:-1]).sum().backward()
    return passes(volume.calls, sum(p.numel() for p in model.parameters()))


def _on_a_2d_mesh(rank: int, world_size: int) -> list[str]:
    shape = (2, world_size // 2)
    mesh = init_device_mesh(device().type, shape, mesh_dim_names=("copies", "pieces"))
    model = fully_shard(LlamaBlocks(SMALL, scale=SCALE), mesh=mesh)
    with Volume() as volume:
        model(tokens(rank, 0)[:-1]).sum().backward()
    return [call.name for call in volume.calls]


def _counted(call):
    with Volume():
        return call()


def _refusal(call) -> str:
    try:
        call()
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "not refused"
