"""Lesson 11: networks of three sizes in four number formats, a vocabulary that is padded, and what fewer bits learn.

How long a step takes, and what memory, is asked of networks that are followed by their shapes. What is learned is asked
of a small one that really trains, with its arithmetic in the format.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.formats import INIT_SCALE, Format, Training
from gpututor.experiments.sweeps import Step, Variant
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

BATCHES = (32, 128, 256, 512, 2048)  # pictures of 32x32
ASKED_BATCH = 128  # as in NVIDIA/apex issue 297
N_PHOTOS = 64
N_TEXTS, MORE_TEXTS, LENGTH = 4, (8, 16), 1024
WORDS, PADDED_WORDS = 50_257, 50_304  # GPT-2's, and the next multiple of 64
MOMENTUM, RATE = 0.9, 0.1
N_LEARNED = 200
HIGH_SCALE = 2.0**40
COMPILED_TEXTS = 12  # nanoGPT's batch
SENTENCES, ODD_LENGTH, EVEN_LENGTH = 32, 61, 64
ROWS, COLUMNS = 8192, 3072  # as in linkedin/Liger-Kernel pull request 1350
WAYS: dict[str, tuple[Format, dict[str, Any]]] = {
    "fp32": (Format.FP32, {}),
    "bf16": (Format.BF16, {}),
    "fp16, scaled": (Format.FP16, {}),
    "fp16, not scaled": (Format.FP16, {"scaled": False}),
    "fp16, scale far too high": (Format.FP16, {"init_scale": HIGH_SCALE}),
}
"""Ways to learn: the format, and what its scaler does."""

RUN_ON = "H100-SXM"  # its memory holds all of it; the page prices what was done on any other card
WHAT = "lesson 11, fewer bits"


def small_key(number_format: Format, batch: int) -> str:
    """Names a step of ResNet-20."""
    return f"resnet20-{number_format.key}-{batch}"


def photos_key(number_format: Format) -> str:
    """Names a step of ResNet-50."""
    return f"resnet50-{number_format.key}"


def texts_key(number_format: Format, n_texts: int = N_TEXTS, words: int = WORDS) -> str:
    """Names a step of GPT-2."""
    return f"gpt2-{number_format.key}-{n_texts}-{words}"


def learned_key(way: str) -> str:
    """Names a training."""
    return "learn-" + way.replace(", ", "-").replace(" ", "-")


def no_wait_key() -> str:
    """Names a step of ResNet-20 whose optimizer looks at the scaler's check by itself."""
    return f"resnet20-fused-{ASKED_BATCH}"


def _trained(
    number_format: Format,
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: tuple[Tensor, Tensor],
    called: Any = None,
) -> Step:
    from torch import nn

    train, (given, wanted) = Training(number_format, net, optimizer, batch[0].device), batch

    def loss_of() -> Tensor:
        return nn.functional.cross_entropy((called or net)(given).flatten(0, -2), wanted.flatten())

    return lambda _k: train(loss_of)


def pictures(
    number_format: Format, batch: int, device: torch.device, *, photos: bool = False, fused: bool = False
) -> Step:
    """A training step of ResNet-20 on pictures of 32x32, or of ResNet-50 on photos of 224x224, with SGD."""
    import torch

    from gpututor.jobs.small_resnet import KINDS, ResNet20
    from gpututor.workloads.vision.resnets import ResNet50

    torch.manual_seed(0)
    with device:  # so that nobody draws weights which only shapes are asked of
        net: nn.Module = ResNet50() if photos else ResNet20()
    side, kinds = (224, 1000) if photos else (32, KINDS)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=MOMENTUM, fused=fused or None)
    x = torch.randn(batch, 3, side, side, device=device)
    return _trained(number_format, net, optimizer, (x, torch.randint(0, kinds, (batch,), device=device)))


def texts(number_format: Format, n_texts: int, words: int, device: torch.device, *, compiled: bool = False) -> Step:
    """A training step of GPT-2's smallest form on so many texts, with AdamW."""
    import torch

    import gpututor
    from gpututor.workloads.language.gpt2 import Gpt2

    torch.manual_seed(0)
    with device:
        net = Gpt2(words=words)
    optimizer = torch.optim.AdamW(net.parameters(), fused=compiled or None)
    ids = torch.randint(0, WORDS, (n_texts, LENGTH + 1), device=device)
    called = gpututor.compile(net) if compiled else net
    return _trained(number_format, net, optimizer, (ids[:, :-1], ids[:, 1:]), called)


def sentences(length: int, device: torch.device) -> Step:
    """A training step in fp16 of a network of GPT-2's size on short sentences, its attention op by op."""
    import torch

    from gpututor.workloads.language.gpt2 import EagerGpt2, Size

    torch.manual_seed(0)
    with device:
        net = EagerGpt2(Size(12, 768, 12, PADDED_WORDS, EVEN_LENGTH))
    ids = torch.randint(0, WORDS, (SENTENCES, length + 1), device=device)
    return _trained(Format.FP16, net, torch.optim.AdamW(net.parameters()), (ids[:, :-1], ids[:, 1:]))


def norm(double: bool, device: torch.device) -> Step:
    """A norm of rows in fp32, whose small constant is one number in fp32, or one in float64 as NumPy makes it."""
    import torch

    x, weight = torch.randn(ROWS, COLUMNS, device=device), torch.ones(COLUMNS, device=device)
    least = torch.tensor([1e-5], dtype=torch.float64 if double else torch.float32, device=device)

    def step(_k: int) -> None:
        with torch.no_grad():
            x * torch.rsqrt(x.square().mean(1, keepdim=True) + least) * weight

    return step


class Learning:
    """The network on faint pictures, one step at a time; every way sees the same pictures in the same order."""

    def __init__(self, way: str, device: torch.device) -> None:
        import torch

        from gpututor.jobs import faint

        torch.manual_seed(0)
        number_format, options = WAYS[way]
        self.net: nn.Module = faint.Denoiser().to(device)
        adam = torch.optim.Adam(self.net.parameters(), lr=faint.LEARNING_RATE)
        self.train = Training(number_format, self.net, adam, device, **options)
        self.first_scale = float(options.get("init_scale", INIT_SCALE))
        noisy, clean = faint.pairs(faint.N_PICTURES)
        self.noisy, self.clean = noisy.to(device), clean.to(device)
        self.device = device

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`; its loss, as the share of that of a network that says nothing, stays there."""
        from torch import nn

        from gpututor.jobs import faint

        at = k * faint.BATCH % faint.N_PICTURES
        x, y = self.noisy[at : at + faint.BATCH], self.clean[at : at + faint.BATCH]
        loss = self.train(lambda: nn.functional.mse_loss(self.net(x), y))
        return loss / faint.NOTHING_LEARNED

    def held_out(self) -> float:
        """The same on pictures that it never saw, in fp32."""
        import torch
        from torch import nn

        from gpututor.jobs import faint

        noisy, clean = faint.pairs(faint.N_HELD_OUT, seed=1)
        with torch.no_grad():
            said = self.net(noisy.to(self.device))
            return float(nn.functional.mse_loss(said, clean.to(self.device))) / faint.NOTHING_LEARNED

    def noted(self) -> dict[str, float]:
        """How often the scaler left a step out, and the share of gradients that are exactly nothing in the end."""
        import math

        import torch

        gradients = [p.grad for p in self.net.parameters() if p.grad is not None and p.dim() > 1]
        n_zeros = sum(each.numel() - int(torch.count_nonzero(each)) for each in gradients)
        found = {"zero_share": n_zeros / sum(each.numel() for each in gradients)}
        scaler = self.train.scaler
        if scaler.is_enabled():  # it halves at each step that it leaves out, and grows only after 2,000 good ones
            found |= {"skipped": math.log2(self.first_scale / scaler.get_scale()), "scale": scaler.get_scale()}
        return found


def _timed(key: str, label: str, make: Any, n: int, *, measured: bool = False) -> Variant:
    n_warmup = 2 if key.startswith("resnet20") else 1  # a host without a lead feels the second step's allocations
    return Variant(key, label, make, n, n, 10 if measured else 2, n_warmup, numerics=False, n_kept=2)


def small(batches: Sequence[int], formats: Sequence[Format] = tuple(Format), **options: Any) -> list[Variant]:
    """ResNet-20 in each format at each batch."""
    return [
        _timed(small_key(each, n), f"ResNet-20, {n} pictures, {each.value}", partial(pictures, each, n), n, **options)
        for n in batches
        for each in formats
    ]


def large(formats: Sequence[Format] = tuple(Format), **options: Any) -> list[Variant]:
    """ResNet-50 and GPT-2 in each format."""
    found = []
    for each in formats:
        make = partial(pictures, each, N_PHOTOS, photos=True)
        found.append(_timed(photos_key(each), f"ResNet-50, {each.value}", make, N_PHOTOS, **options))
        make = partial(texts, each, N_TEXTS, WORDS)
        found.append(_timed(texts_key(each), f"GPT-2, {each.value}", make, N_TEXTS, **options))
    return found


def others() -> list[Variant]:
    """What else the page asks: padded vocabularies, more texts, the check that needs no wait, and threads."""
    found = [
        _timed(
            texts_key(each, words=PADDED_WORDS),
            f"GPT-2, {each.value}, {PADDED_WORDS:,} words",
            partial(texts, each, N_TEXTS, PADDED_WORDS),
            N_TEXTS,
        )
        for each in Format
    ]
    found += [
        _timed(texts_key(each, n), f"GPT-2, {each.value}, {n} texts", partial(texts, each, n, WORDS), n)
        for n in MORE_TEXTS
        for each in (Format.FP32, Format.FP16)
    ]
    fused = partial(pictures, Format.FP16, ASKED_BATCH, fused=True)
    found.append(_timed(no_wait_key(), "ResNet-20, fp16, fused", fused, ASKED_BATCH))
    for words in (WORDS, PADDED_WORDS):
        make = partial(texts, Format.BF16, COMPILED_TEXTS, words, compiled=True)
        found.append(_timed(f"compiled-{words}", f"GPT-2, compiled, {words:,} words", make, COMPILED_TEXTS))
    for n in (ODD_LENGTH, EVEN_LENGTH):
        found.append(_timed(f"length-{n}", f"sentences of {n}", partial(sentences, n), SENTENCES))
    for double in (False, True):
        name = "float64" if double else "float32"
        found.append(_timed(f"norm-{name}", f"a norm with one {name}", partial(norm, double), ROWS))
    return found


def learned(n_steps: int = N_LEARNED) -> list[Variant]:
    """Each way to learn, from its first step on."""
    from gpututor.jobs.faint import BATCH

    return [
        Variant(learned_key(way), way, partial(Learning, way), None, BATCH, n_steps, 0, n_kept=min(4, n_steps))
        for way in WAYS
    ]


def run(
    progress: Progress,
    *,
    batches: Sequence[int] = BATCHES,
    n_learned: int = N_LEARNED,
    machine: str = RUN_ON,
) -> dict[str, Any]:
    """Train all of them on simulated cards, as `sweeps.simulate`."""
    asked = small(batches) + large() + learned(n_learned) + others()
    return sweeps.simulate(progress, asked, what=WHAT, machine=machine)


def measure(progress: Progress, *, device: str = "cuda", batches: Sequence[int] = BATCHES) -> dict[str, Any]:
    """The networks on the reader's GPU; on a processor the smallest one alone, in the formats that it has units for."""
    if device == "cpu":
        asked = small(batches[:2], (Format.FP32, Format.BF16))
    else:
        asked = small(batches, measured=True) + large(measured=True)
    return sweeps.measure(progress, asked, what=WHAT, device=device)
