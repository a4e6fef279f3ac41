"""What DDP and the stages of ZeRO really put on the wire, in passes (Linux, in a private network)."""

import json

from helpers.llama_blocks import SMALL, LlamaBlocks
from helpers.private_network import run_inside


def wire_passes(ways: list[tuple[str, bool]], ranks: int = 4, scale: int = 64) -> list[float]:
    """Passes of the model's float64 parameters that one step of each way puts on the wire.

    A pass is K - 1 times the vector, for all K ranks together (helpers.volume); headers are counted too.
    ways, scale: as in helpers.ranks.zero_wire.step_bytes.
    Raises helpers.private_network.NoPrivateNetwork where the machine does not give one.
    """
    options = dict(ranks=ranks, backend="gloo", ways=ways, scale=scale)
    code = f"""
        from helpers.processes import run
        from helpers.ranks.zero_wire import step_bytes
        print(run(step_bytes, timeout=90, **{options!r})[0])
    """
    whole = 8 * sum(p.numel() for p in LlamaBlocks(SMALL, scale=scale).parameters())
    return [moved / whole / (ranks - 1) for moved in json.loads(run_inside(code))]
