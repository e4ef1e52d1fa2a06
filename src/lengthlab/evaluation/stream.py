"""Long sequences read in pieces, so that memory does not grow with them but by what a network itself remembers.

A network that can read in pieces (`Network.in_pieces`) says the same as at once. Between pieces only the state is kept: of a
recurrence a few numbers, of hierarchical attention its chunks, of softmax attention the keys and values of all tokens. Logits,
and the queries of a last attention, are computed where something is asked. Attention that others come after has queries at all
tokens, and its work grows with T² in pieces as at once.

Shapes: B samples, T tokens, Q positions of a sample at which something is asked, U columns at which any sample is.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from lengthlab.memory import TOKEN_BYTES, memory_of
from lengthlab.models.layout import PLAIN, Layout, Piece
from lengthlab.models.mixer import LaidOut, Mixer
from lengthlab.models.model import Network
from lengthlab.tasks import IGNORE

LONG = 2**15
"""Tokens of a sequence, up to which it is read at once."""
SIDE_BY_SIDE = {"cpu": 4, "cuda": 64}
"""Samples that are read together at the most: a recurrence walks many as fast as one."""
PIECE = {"cpu": (2**10, 2**10), "cuda": (2**12, 2**15)}
"""Tokens of a piece, at the least and at the most. On a CPU every core has pieces and streams of its own, and a laptop should
have room for them. A GPU works on many tokens as fast as on few …
"""
TOKENS = 2**18
"""… so that few samples have larger pieces: of all that are read together, about so many tokens at a time."""
READ_AGAIN = 2**31
"""Bytes of keys and values of samples that are read together, at the most, where all are read again for every piece."""


Told = Callable[[int, int], None]
"""That piece number so many, from 0, of so many is read."""


def is_streamed(network: nn.Module, tokens: int) -> bool:
    """Whether sequences of so many tokens are read in pieces."""
    return tokens > LONG and isinstance(network, Network) and network.in_pieces


def stream_bytes(network: nn.Module, tokens: int) -> int:
    """Of all keys, values and landmarks that a sample of so many tokens leaves in a stream; none, where it is read at once.

    >>> from lengthlab import models
    >>> stream_bytes(models.hybrid_block(width=256, blocks=1).build(vocabulary=5), 2**20) / 2**30
    2.0
    """
    return _bytes(network, tokens, LaidOut) if is_streamed(network, tokens) else 0


def side_by_side(network: nn.Module, tokens: int, device: torch.device, copies: int = 1) -> int:
    """How many streams of so many tokens are read together: as many as have room on the host, where as many `copies` of the
    network are at work, and on the device what softmax attention reads again and again.
    """
    most, whole = SIDE_BY_SIDE.get(device.type, SIDE_BY_SIDE["cpu"]), _bytes(network, tokens, Mixer)
    each = stream_bytes(network, tokens) + 4 * TOKEN_BYTES * tokens
    room = memory_of("cpu") // 4 // copies // each
    return max(1, min(most, room, READ_AGAIN // whole if whole else most))


def piece_on(device: torch.device, rows: int = SIDE_BY_SIDE["cuda"]) -> int:
    """Tokens of a piece on a device, where so many samples are read together: a power of two.

    >>> [piece_on(torch.device("cuda"), rows) for rows in (1, 20, 64, 1000)], piece_on(torch.device("cpu"), 1)
    ([32768, 8192, 4096, 4096], 1024)
    """
    least, most = PIECE.get(device.type, PIECE["cpu"])
    return max(least, min(most, 1 << (max(1, TOKENS // rows).bit_length() - 1)))


def _bytes(network: nn.Module, tokens: int, kind: type[LaidOut]) -> int:
    return sum(module.state_bytes(tokens) for module in network.modules() if isinstance(module, kind))


@torch.no_grad()
def say_in_pieces(
    network: Network, tokens_BT: Tensor, layout: Layout = PLAIN, told: Told = lambda piece, pieces: None, piece: int = 0
) -> Tensor:
    """said_BQ: the most likely token after each position that is asked, or after every one. `told` is called after each piece.
    Tokens may be on the host: only a piece of them is where the network is. `piece`: so many tokens; by `piece_on`, if 0.

    >>> from lengthlab import models
    >>> network, tokens_BT = models.lstm(width=8).build(vocabulary=5), torch.tensor([[1, 2, 3, 4, 3, 2]])
    >>> said_BQ = say_in_pieces(network, tokens_BT, Layout(query_BQ=torch.tensor([[5, 1]])), piece=4)
    >>> torch.equal(said_BQ, network(tokens_BT).argmax(dim=-1)[:, [5, 1]])
    True
    """
    said_BT, query_BQ, position_BT = torch.full_like(tokens_BT, IGNORE), layout.query_BQ, layout.position_BT
    state: object = None
    device = next((parameter.device for parameter in network.parameters()), tokens_BT.device)
    rows, read = tokens_BT.shape
    piece = piece or piece_on(device, rows)
    starts = range(0, read, piece)
    for number, start in enumerate(starts):
        piece_BT = tokens_BT[:, start : start + piece]
        column_U = _columns(query_BQ, start, piece_BT)
        own_BT = None if position_BT is None else position_BT[:, start : start + piece].to(device)
        query_BU = column_U.to(device).expand(len(tokens_BT), -1)
        logits_BUV, state = network.read(piece_BT.to(device), state, Layout(own_BT, query_BU, piece=Piece(start, read)))
        said_BT[:, start + column_U] = logits_BUV.argmax(dim=-1).to(said_BT.device)
        told(number, len(starts))
    return said_BT if query_BQ is None else said_BT.gather(1, query_BQ)


def _columns(query_BQ: Tensor | None, start: int, piece_BT: Tensor) -> Tensor:
    """Where in a piece any sample is asked."""
    tokens = piece_BT.shape[1]
    if query_BQ is None:
        return torch.arange(tokens, device=piece_BT.device)
    inside = (query_BQ >= start) & (query_BQ < start + tokens)
    column_U: Tensor = query_BQ[inside].unique() - start  # type: ignore[no-untyped-call]
    return column_U
