"""Random numbers on the simulated GPU: the host's own generator, until a program seeds the card apart.

CUDA gives each card a generator of its own. Here the card at first draws from the host's generator, so that after
the same `torch.manual_seed` a training run meets the CPU's dropout masks, bit for bit. A program that sets the
card's generator alone (`torch.simgpu.manual_seed`, `seed`, `set_rng_state`) gets what CUDA gives: from then on the
card draws from a generator of its own and leaves the host's alone. `torch.manual_seed` joins them again, and so does
a state or seed that is just the host's: the usual lines `torch.manual_seed(1); torch.simgpu.manual_seed_all(1)`
keep the CPU's numbers, and so do `fork_rng` and checkpointing.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu.forms import DEVICE_NAME
from gpututor.simgpu.private.asked import INITIALIZED
from gpututor.simgpu.private.device import SEED_DEVICE, address_of

SEEDED = torch.Tag.nondeterministic_seeded
"""Torch's mark of an op that draws random numbers."""

_of_the_card: set[int] = set()
"""Addresses of the card's generators: torch hands an op the generator itself, without its Python class."""

_host = torch.default_generator
_torch_generator: Any = type(_host)


class _Card:
    """The card's own generator; None while it draws from the host's."""

    own: Any = None
    drawing = False  # an op that draws may be made of others that do


def _differs_from_host(state: torch.Tensor) -> bool:
    return not torch.equal(state, _host.get_state())


def _take(own: Any) -> None:
    """Let the card draw from `own`, or from the host's generator."""
    from gpututor.simgpu.dispatch import plans

    if (own is None) is not (_Card.own is None):
        for of_op in (of_op for table in plans for of_op in table.values()):
            if SEEDED in of_op.op.tags:
                of_op.clear()  # a remembered op would go past `in_step_with_host`
    _Card.own = own


# --- torch.simgpu.* ---------------------------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the card's generator and leave the host's alone."""
    own = _torch_generator()
    own.manual_seed(int(seed))
    _take(own if _differs_from_host(own.get_state()) else None)


def seed() -> int:
    """Seed the card's generator from chance; gives the seed."""
    own = _torch_generator()
    number: int = own.seed()
    _take(own)
    return number


def initial_seed() -> int:
    """The seed that the card's generator began with."""
    number: int = (_Card.own or _host).initial_seed()
    return number


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of the generator that the card draws from."""
    state: torch.Tensor = (_Card.own or _host).get_state()
    return state


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Let the card draw as it did in `state`; the host's generator stays as it is."""
    if not _differs_from_host(state):
        _take(None)
        return
    own = _Card.own or _torch_generator()
    own.set_state(state)
    _take(own)


def join_host(seed: Any = None) -> None:
    """`torch.manual_seed` and `torch.seed` seed every device alike, so host and card draw from one generator."""
    _take(None)


def set_rng_state_all(states: Any) -> None:
    """The same as `set_rng_state` for a list with one state a card; cards of one machine share a generator."""
    set_rng_state(next(iter(states)))


def add_to(module: types.ModuleType) -> None:
    """Give `torch.simgpu` its random functions, which are in `torch.simgpu.random` too."""
    functions: dict[str, Callable[..., Any]] = {
        f.__name__: f for f in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state, set_rng_state_all)
    }
    functions |= {
        "manual_seed_all": manual_seed,
        "seed_all": seed,
        "get_rng_state_all": lambda: [get_rng_state() for _ in range(module.device_count())],
    }
    setattr(module, INITIALIZED, True)  # else a checkpoint keeps the host's state alone
    module.random = types.ModuleType(f"{module.__name__}.random", __doc__)  # type: ignore[attr-defined]
    for name, function in functions.items():
        setattr(module, name, function)
        setattr(module.random, name, function)


# --- drawing ----------------------------------------------------------------------------------------------------


def in_step_with_host(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an op that draws draws from the host's generator, so that it may be remembered.

    Raises:
        RuntimeError: the op was given a generator of the CPU.
    """
    given = kwargs.get("generator") or next((a for a in args if isinstance(a, _torch_generator)), None)
    if given is not None and address_of(given) not in _of_the_card:
        raise RuntimeError(
            f"Expected a '{DEVICE_NAME}' device type for generator but found '{given.device.type}'; "
            f"make it with torch.Generator(device='{DEVICE_NAME}')"
        )
    return given is None and _Card.own is None


def drawn(compute: Callable[..., Any], *args: Any) -> Any:
    """`compute(*args)`, with what it draws taken from the card's generator."""
    own = _Card.own
    if own is None or _Card.drawing:
        return compute(*args)
    before = _host.get_state()
    _host.set_state(own.get_state())
    _Card.drawing = True
    try:
        return compute(*args)
    finally:
        _Card.drawing = False
        own.set_state(_host.get_state())
        _host.set_state(before)


class _Generators(type(_torch_generator)):  # type: ignore[misc]  # torch's own metaclass has no name in stubs
    """Lets torch's own generators count as `torch.Generator` too."""

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, _torch_generator)


class Generator(_torch_generator, metaclass=_Generators):  # type: ignore[misc]  # Any, as torch's stub lacks _cdata
    """`torch.Generator`, which also knows the simulated GPU; its numbers are those of a CPU generator."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """A generator for this device; torch's own one for any other than the simulated GPU."""
        if torch.device(device).type != DEVICE_NAME:
            return _torch_generator(device)
        made = super().__new__(cls)
        made.home = torch.device(DEVICE_NAME, torch.device(device).index or 0)
        _of_the_card.add(address_of(made))
        weakref.finalize(made, _of_the_card.discard, address_of(made))
        return made

    def __init__(self, device: Any = "cpu") -> None: ...

    @property
    def device(self) -> torch.device:
        """The simulated GPU, by the name that leads to it at the moment."""
        return self.home

    def clone_state(self) -> Generator:
        """A generator of the same card in the same state."""
        twin = Generator(self.home)
        twin.set_state(self.get_state())
        return twin

    def __reduce__(self) -> Any:
        return _rebuild, (str(self.home), self.initial_seed(), None, self.get_state())

    home: torch.device


def _rebuild(device: str, seed: int, offset: int | None, state: torch.Tensor) -> Any:
    made = Generator(device)
    made.manual_seed(seed)
    made.set_state(state)
    return made


def register_rng() -> None:
    """Let seeds and generators know the card."""
    torch.Generator = Generator  # type: ignore[misc]
    SEED_DEVICE.put(join_host)
