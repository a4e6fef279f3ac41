"""The English text the book trains on, as bytes: sentences of unequal length, padded into batches.

Lewis Carroll, Alice's Adventures in Wonderland; `book/data/README.md` names edition, licence and checksum.
Left out: tokenisers. A token is a byte.
"""

import hashlib
import re
from pathlib import Path

import torch

PATH = Path(__file__).resolve().parents[1] / "book" / "data" / "alice.txt"
SHA256 = "7467306ee0feed4971260f3c87421154a05be571d944e9cb021a5713700c38f0"
PADDING = -100  # cross_entropy's ignore_index


def sentences() -> list[bytes]:
    """The sentences of the text in order, 2 to 400 bytes each; headings and verse are left out.

    Raises ValueError when the file is not the one the book's numbers were made with.
    """
    raw = PATH.read_bytes()
    if hashlib.sha256(raw).hexdigest() != SHA256:
        raise ValueError(f"{PATH.name}: not the text this book was made with; restore it with git checkout")
    paragraphs = re.split(rb"\r\n\s*\r\n", raw.replace(b"\x1a", b""))
    prose = (b" ".join(p.split()) for p in paragraphs if not re.match(rb"\s*\r\n {6}| {6}", p))
    found = (s.strip() for p in prose for s in re.split(rb"(?<=[.!?])['\")]*\s+", p))
    return [s[:400].strip() for s in found if len(s) > 1]


def batch(lines: list[bytes]) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and labels of next-byte prediction, padded to the longest line.

    Returns two int64 tensors (lines, longest - 1); labels are PADDING where there is nothing to predict.
    """
    longest = max(map(len, lines))
    inputs = torch.zeros(len(lines), longest - 1, dtype=torch.int64)
    labels = torch.full((len(lines), longest - 1), PADDING)
    for row, line in enumerate(lines):
        text = torch.tensor(list(line))
        inputs[row, : len(line) - 1] = text[:-1]
        labels[row, : len(line) - 1] = text[1:]
    return inputs, labels
