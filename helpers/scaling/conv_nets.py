"""Three convolutional networks that early scaling reports used: how much each computes a parameter.

VGG-16 (Simonyan and Zisserman 2015) and ResNet-101 (He et al. 2016) on 224 x 224 images, Inception V3
(Szegedy et al. 2016, without the auxiliary classifier) on 299 x 299. Only shapes: nothing is trained, batch
normalisation and activations, which cost little, are left out of the count.
"""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def vgg16() -> nn.Module:
    """Thirteen convolutions, three linear layers."""
    layers, width = [], 3
    for repeat, out in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(repeat):
            layers += [nn.Conv2d(width, out, 3, padding=1), nn.ReLU()]
            width = out
        layers.append(nn.MaxPool2d(2))
    sizes = (512 * 7 * 7, 4096, 4096, 1000)
    linear = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
    return nn.Sequential(*layers, nn.Flatten(), *linear)


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 around a shortcut."""

    def __init__(self, into: int, width: int, stride: int):
        super().__init__()
        out = 4 * width
        conv = [
            nn.Conv2d(into, width, 1, bias=False),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.Conv2d(width, out, 1, bias=False),
        ]
        self.body = nn.Sequential(*(part for c in conv for part in (c, nn.BatchNorm2d(c.out_channels))))
        self.shortcut = nn.Identity()
        if stride > 1 or into != out:
            self.shortcut = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


def resnet101() -> nn.Module:
    """A stem, 3 + 4 + 23 + 3 bottlenecks, one linear layer."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.MaxPool2d(3, 2, 1)]
    into = 64
    for stage, blocks in enumerate((3, 4, 23, 3)):
        for block in range(blocks):
            width = 64 * 2**stage
            layers.append(Bottleneck(into, width, stride=2 if stage and not block else 1))
            into = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000))


class Mixed(nn.Module):
    """Branches beside each other, their channels put together."""

    def __init__(self, *branches: nn.Module):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def _chain(into: int, *convs: tuple) -> nn.Sequential:
    """Convolutions (out, kernel, stride, padding); as large as the input unless told otherwise."""
    layers = []
    for out, kernel, *rest in convs:
        kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        stride, padding = rest or (1, tuple(size // 2 for size in kernel))
        layers += [nn.Conv2d(into, out, kernel, stride, padding, bias=False), nn.BatchNorm2d(out)]
        into = out
    return nn.Sequential(*layers)


def _pooled(into: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), _chain(into, (out, 1)))


def inception_v3() -> nn.Module:
    """A stem, eleven mixed blocks in three sizes, one linear layer."""
    wide, tall, halve = (1, 7), (7, 1), (2, 0)
    stem = [_chain(3, (32, 3, *halve), (32, 3, 1, 0), (64, 3)), nn.MaxPool2d(3, 2)]
    layers = [*stem, _chain(64, (80, 1), (192, 3, 1, 0)), nn.MaxPool2d(3, 2)]
    for into, pool in ((192, 32), (256, 64), (288, 64)):
        five, three = _chain(into, (48, 1), (64, 5)), _chain(into, (64, 1), (96, 3), (96, 3))
        layers.append(Mixed(_chain(into, (64, 1)), five, three, _pooled(into, pool)))
    double = _chain(288, (64, 1), (96, 3), (96, 3, *halve))
    layers.append(Mixed(_chain(288, (384, 3, *halve)), double, nn.MaxPool2d(3, 2)))
    for c in (128, 160, 160, 192):
        seven = _chain(768, (c, 1), (c, wide), (192, tall))
        double = _chain(768, (c, 1), (c, tall), (c, wide), (c, tall), (192, wide))
        layers.append(Mixed(_chain(768, (192, 1)), seven, double, _pooled(768, 192)))
    seven = _chain(768, (192, 1), (192, wide), (192, tall), (192, 3, *halve))
    layers.append(Mixed(_chain(768, (192, 1), (320, 3, *halve)), seven, nn.MaxPool2d(3, 2)))
    for into in (1280, 2048):
        split = [Mixed(_chain(384, (384, (1, 3))), _chain(384, (384, (3, 1)))) for _ in range(2)]
        three = nn.Sequential(_chain(into, (384, 1)), split[0])
        double = nn.Sequential(_chain(into, (448, 1), (384, 3)), split[1])
        layers.append(Mixed(_chain(into, (320, 1)), three, double, _pooled(into, 192)))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def macs_and_parameters(build) -> tuple[int, int]:
    """Multiplications of one image's forward pass, as torch counts them, and the number of parameters."""
    size = 299 if build is inception_v3 else 224
    with torch.device("meta"):
        model = build()
    with FlopCounterMode(display=False) as counter:
        model(torch.empty(1, 3, size, size, device="meta"))
    return counter.get_total_flops() // 2, sum(p.numel() for p in model.parameters())
