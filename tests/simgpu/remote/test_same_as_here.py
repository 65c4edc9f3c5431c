"""A card in another process gives the tape and the numbers of a card in this one: entry for entry, bit for bit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gpututor.model.tape import Sync, TapeOp
from tests.simgpu.remote.bridge import tape_apart, tape_here

N_WORDS = 20


@pytest.fixture(autouse=True)
def one_thread():
    """Sums of several threads differ in their last bits from those of one, which a card apart uses."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Recurrent(nn.Module):
    """A language model of a few numbers."""

    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.table, self.cell = nn.Embedding(N_WORDS, 8), kind(8, 12, 2, dropout=0.2, batch_first=True)
        self.top = nn.Linear(12, N_WORDS)

    def forward(self, x, y):
        scores = self.top(self.cell(self.table(x))[0])
        return nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())


class Attending(nn.Module):
    """A Transformer of two layers, with a mask."""

    def __init__(self):
        super().__init__()
        self.table, self.top = nn.Embedding(N_WORDS, 16), nn.Linear(16, N_WORDS)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)

    def forward(self, x, y):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        scores = self.top(self.layers(self.table(x), mask=mask))
        return nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())


class Pictured(nn.Module):
    """A convolution, a batch norm, a pooling."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
        )

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.layers(x), y)


def words():
    return tuple(torch.randint(0, N_WORDS, (3, 6)).to("simgpu") for _ in range(2))


def pictures():
    return torch.randn(3, 3, 8, 8).to("simgpu"), torch.randint(0, 5, (3,)).to("simgpu")


def training(model, data, optimizer=torch.optim.AdamW, half=None, **options):
    """A loop of four steps that reads each loss."""

    def work():
        torch.manual_seed(0)
        net = model().to("simgpu")
        steps = optimizer(net.parameters(), lr=1e-2, **options)
        scaler = torch.amp.GradScaler("simgpu", enabled=half is torch.float16)
        batch, losses = data(), []
        for _ in range(4):
            steps.zero_grad()
            with torch.autocast("simgpu", dtype=half or torch.bfloat16, enabled=half is not None):
                loss = net(*batch)
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(steps)
            scaler.update()
            losses.append(loss.item())
        return losses

    return work


LOOPS = {
    "LSTM": training(Recurrent, words),
    "GRU": training(lambda: Recurrent(nn.GRU), words, torch.optim.SGD, momentum=0.9),
    "LSTM in float16": training(Recurrent, words, half=torch.float16),
    "Transformer": training(Attending, words),
    "Transformer, one tensor at a time": training(Attending, words, foreach=False),
    "Transformer in bfloat16": training(Attending, words, half=torch.bfloat16),
    "convolution, fused optimizer": training(Pictured, pictures, fused=True),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_a_training_loop_leaves_the_same_tape_and_losses(cards, loop):
    assert tape_apart(cards, loop) == tape_here(loop)


def values():
    """Ways to read values and to learn sizes from them."""
    x = torch.arange(12.0, device="simgpu").view(3, 4)
    found = [x[x > 3].sum().item(), torch.nonzero(x > 5).shape, str(x), f"{x.sum():.1f}", x.cpu().tolist()]
    found += [bool((x >= 0).all()), torch.equal(x, x), x.unique().tolist(), x.sort().values.tolist()]
    return [*found, torch.tensor([x.sum(), x.mean()]).tolist(), torch.tensor([1.0, 2.0], device="simgpu").tolist()]


def in_place():
    """Ops that give a tensor another size, or write into one that was handed in."""
    x, y = torch.ones(3, 4, device="simgpu"), torch.zeros(2, 3, device="simgpu")
    found = [x.t_().shape]
    torch.add(y, 1, out=y)
    z = torch.empty(0, device="simgpu")
    torch.mul(y, 2, out=z)
    y.data = torch.ones(2, 2, device="simgpu")
    return [*found, z.tolist(), y.sum().item()]


def random():
    """Draws of the card and of the host, together and apart."""
    torch.manual_seed(3)
    found = [torch.rand(3, device="simgpu").tolist(), torch.rand(2).tolist()]
    torch.simgpu.manual_seed(7)
    found += [torch.randn(3, device="simgpu").tolist(), torch.rand(2).tolist()]
    dice = torch.Generator("simgpu")
    dice.manual_seed(1)
    found += [torch.rand(3, device="simgpu", generator=dice).tolist() for _ in range(2)]
    torch.manual_seed(0)
    return found


def memory():
    """What the allocator says."""
    x = [torch.ones(1000, k + 1, device="simgpu") for k in range(5)]
    del x[1]
    card = torch.simgpu
    return card.memory_allocated(), card.max_memory_allocated(), card.mem_get_info(), card.memory_reserved()


def streams():
    """Streams, events, pinned copies."""
    first, last = (torch.simgpu.Event(enable_timing=True) for _ in range(2))
    x, side = torch.ones(4, 4, device="simgpu"), torch.simgpu.Stream()
    first.record()
    with torch.simgpu.stream(side):
        y = torch.ones(4, 4).pin_memory().to("simgpu", non_blocking=True)
    torch.simgpu.current_stream().wait_stream(side)
    y.record_stream(torch.simgpu.current_stream())
    x = x @ y
    last.record()
    last.synchronize()
    torch.simgpu.synchronize()
    return first.elapsed_time(last), side.query(), x.sum().item()


@pytest.mark.parametrize("work", [values, in_place, random, memory, streams])
def test_the_rest_of_a_program_does_too(cards, work):
    assert tape_apart(cards, work) == tape_here(work)


def errors():
    """Errors that a program may catch, by kind and words."""
    x = torch.ones(3, 4, device="simgpu")
    found = []
    for bad in (
        lambda: x @ x,
        lambda: x + torch.ones(3, 4),
        lambda: x[torch.tensor([99], device="simgpu")],
        lambda: torch.empty(1 << 40, device="simgpu"),
    ):
        try:
            bad()
        except Exception as error:  # noqa: BLE001 - all are compared
            found.append((type(error), str(error)))
    return found


def test_errors_come_as_the_same_kind_in_the_same_words(cards):
    assert tape_apart(cards, errors)[1] == tape_here(errors)[1]


def test_tensors_that_a_judge_laid_there_are_the_programs(cards):
    card = cards.card(placed=[("tests.simgpu.remote.bridge:laid", [3])])
    from gpututor.simgpu.remote import session as remote

    fd = card.socket.detach()
    with remote.session_over(fd, "p3.2xlarge") as session:
        (x,) = session.placed(0)
        session.start()
        session.end({"sum": x.sum()})
    remote._lines.pop(fd).sock.close()
    (run,), _ = card.runs()

    assert run.gave == {"sum": 9.0}


def test_a_checkpoint_with_dropout_computes_again_once(cards):
    layers = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def work():
        net = layers.to("simgpu")
        x = torch.ones(2, 2, device="simgpu", requires_grad=True)
        torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum().backward()

    entries, _ = tape_apart(cards, work)
    names = [entry.name for entry in entries if type(entry) is TapeOp]

    assert names.count("addmm") == 2
    assert not any(type(entry) is Sync for entry in entries[:-1])
