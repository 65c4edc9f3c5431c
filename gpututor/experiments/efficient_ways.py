"""Lesson 13's networks, orders of channels and ways to make a network smaller, and what their files are called."""

from __future__ import annotations

from enum import Enum

from gpututor.experiments.formats import Format
from gpututor.experiments.slimmed import Way

BATCHES = (1, 8, 64, 256)
ASKED_BATCH = 64


class Net(Enum):
    """A network for photos of 224 by 224 points; the value is what a reader sees."""

    RESNET50 = "ResNet-50"
    RESNET18 = "ResNet-18"
    MOBILENET = "MobileNet V2"
    EFFICIENTNET = "EfficientNet-B0"

    @property
    def key(self) -> str:
        """Names its files."""
        return self.name.lower()


class Order(Enum):
    """The number format, and whether channels are the first or the last dimension in memory."""

    FP32 = "fp32, channels first"
    FP32_LAST = "fp32, channels last"
    FP16 = "fp16, channels first"
    FP16_LAST = "fp16, channels last"

    @property
    def key(self) -> str:
        """Names its files."""
        return self.name.lower()

    @property
    def format(self) -> Format:
        """The number format."""
        return Format.FP16 if self in (Order.FP16, Order.FP16_LAST) else Format.FP32

    @property
    def last(self) -> bool:
        """Whether channels are the last dimension."""
        return self in (Order.FP32_LAST, Order.FP16_LAST)


class Slim(Enum):
    """What is done to a trained network before it is asked; the value is what a reader sees."""

    AS_IT_IS = "as it is"
    ZEROS = "nine of ten weights zero"
    MASKED = "the same, masks left on"
    HALVED = "half the channels taken out"


class Bytes(Enum):
    """How the linear layers of a vision transformer multiply."""

    HALVES = "fp16"
    COMPILED = "fp16, compiled"
    INT8 = "int8"
    INT8_COMPILED = "int8, compiled"

    @property
    def key(self) -> str:
        """Names its files."""
        return self.name.lower()


def train_key(net: Net, batch: int = ASKED_BATCH, order: Order = Order.FP16_LAST) -> str:
    """Names a step of training."""
    return f"train-{net.key}-{order.key}-{batch}"


def ask_key(net: Net) -> str:
    """Names the forward pass of one photo in fp32."""
    return f"ask-{net.key}"


def slim_key(slim: Slim, batch: int = ASKED_BATCH) -> str:
    """Names a forward pass of ResNet-50."""
    return f"slim-{slim.name.lower()}-{batch}"


def bytes_key(way: Bytes) -> str:
    """Names a forward pass of the vision transformer."""
    return f"vit-{way.key}"


def layer_key(depthwise: bool) -> str:
    """Names one convolution."""
    return f"layer-{'depthwise' if depthwise else 'whole'}"


def learned_key(way: Way) -> str:
    """Names what a small reader of digits does."""
    return f"digits-{way.key}"
