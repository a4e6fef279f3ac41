"""A rank function that reads the noise of the gradient off the two norms that DDP has anyway."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from helpers.byte_model import ByteModel
from helpers.processes.rank import device
from helpers.scaling.letters import SYMBOLS, descend, pairs
from helpers.text import sentences

LINES, LENGTH = 256, 17  # of the network's data set: sentences, and bytes of each


def letters(trained: int = 0) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    """The model of helpers.scaling.letters after `trained` steps, and its samples, int64 (n, 1) each."""
    model = torch.nn.Embedding(SYMBOLS, SYMBOLS, dtype=torch.float64)
    model.weight.data = torch.from_numpy(descend(trained))
    first, second = (torch.from_numpy(each.copy())[:, None] for each in pairs())
    return model, first, second


def network() -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    """A byte model with three layers, and 256 lines of 16 bytes with the bytes to predict."""
    torch.manual_seed(0)
    model = ByteModel(width=8, hidden=16)
    lines = [s[:LENGTH] for s in sentences() if len(s) >= LENGTH][:LINES]
    text = torch.tensor([list(line) for line in lines])
    return model, text[:, :-1], text[:, 1:]


def norms(
    rank: int,
    world_size: int,
    what: str,
    batch: int,
    steps: int,
    same_samples: bool = False,
    **options,
) -> tuple[float, float]:
    """Mean squared norm of this rank's gradient of `batch` samples, and of the average of all ranks.

    what: "letters" or "network"; samples are drawn with replacement. The parameters stay where they are.
    same_samples: all ranks draw the same, as they do when somebody forgets the sampler.
    """
    model, inputs, labels = {"letters": letters, "network": network}[what](**options)
    ddp = DistributedDataParallel(model.to(device()), bucket_cap_mb=100)
    squares_of_own, squares_of_mean = [], []

    def hook(state, bucket):
        own = bucket.buffer()
        squares_of_own.append(own.float().square().sum())

        def note(done):
            mean = done.value()[0] / dist.get_world_size()
            squares_of_mean.append(mean.float().square().sum())
            return mean

        return dist.all_reduce(own, async_op=True).get_future().then(note)

    ddp.register_comm_hook(None, hook)
    draw = torch.Generator().manual_seed(0 if same_samples else rank)
    for _ in range(steps):
        chosen = torch.randint(len(inputs), (batch,), generator=draw)
        logits = ddp(inputs[chosen].to(device()))
        loss = cross_entropy(
            logits.flatten(0, 1), labels[chosen].flatten().to(device())
        )
        ddp.zero_grad()
        loss.backward()
    squares = torch.stack([sum(squares_of_own), sum(squares_of_mean)])
    dist.all_reduce(squares)
    small, large = (squares / world_size / steps).tolist()
    return small, large
