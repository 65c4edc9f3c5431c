"""Code that is judged attacks its card: books, clocks, socket, and the work itself. Nothing is gained by it."""

from __future__ import annotations

import json

import pytest

from gpututor.cards import machine
from gpututor.lab.cards_pool import CardLimits, Cards
from gpututor.simgpu.remote import frames
from gpututor.simgpu.remote import session as remote
from gpututor.simgpu.remote.line import CardGone
from gpututor.timeline import Activity
from tests.simgpu.remote.bridge import code_apart

N = 64
FLOP = 2 * N**3
V100 = machine("p3.2xlarge")


def body(text: str, before: str = "") -> str:
    return before + "def work(a, b):\n" + "".join(f"    {line}\n" for line in text.splitlines())


# --- a process that patches, forges, or moves the work ----------------------------------------------------------


def test_a_patched_session_leaves_the_books_as_they_are(cards):
    code = body(
        "total = sum((a @ b).sum().item() for _ in range(3))\nreturn a @ b",
        "from gpututor.simgpu import session, dispatch\n"
        "from gpututor.simgpu.remote import session as remote\n"
        "session.Session.account = lambda *a: None\n"
        "keep = remote.RemoteSession.account\n"
        "remote.RemoteSession.account = lambda self, entry: None\n",
    )
    launched, sentence = code_apart(cards, code)

    assert sentence == ""
    assert launched[0].flop(V100) > 4 * FLOP
    assert launched[0].n_waits == 3


def test_patched_clocks_and_events_change_no_time(cards):
    plain, _ = code_apart(cards, body("return a @ b"))
    patched, _ = code_apart(
        cards,
        body(
            "return a @ b",
            "import time, torch\ntime.perf_counter = lambda: 0.0\n"
            "class Event:\n    def elapsed_time(self, other): return 0.0\n"
            "torch.Event = Event\n",
        ),
    )

    assert patched[0].tape == plain[0].tape


@pytest.mark.parametrize(
    "forged",
    [
        "{'tape': 'AAAA', 'gave': [[1.0]]}",
        "{'recording': 0}",
        "{'recording': 1}",
    ],
    ids=["a tape of its own", "a run that never was", "a number out of order"],
)
def test_a_forged_record_is_no_run(cards, forged):
    code = f"from gpututor.exercises.on_card import product\nproduct.recorded = lambda *a, **k: {forged}\n" + body(
        "return a @ b"
    )
    launched, sentence = code_apart(cards, code)

    assert launched == []
    assert "1 runs on the card were asked for, and 0 are complete" in sentence


def test_a_second_run_beside_the_one_asked_for_ends_the_card(cards):
    code = body(
        "return a @ b",
        "from gpututor.exercises.on_card import product\n"
        "real = product.recorded\n"
        "def twice(*a, **k):\n    real(*a, **k)\n    return real(*a, **k)\n"
        "product.recorded = twice\n",
    )
    launched, sentence = code_apart(cards, code)

    assert launched == []
    assert "a run more than there is" in sentence


def test_work_moved_to_the_host_shows_as_copies_and_missing_flop(cards):
    launched, _ = code_apart(cards, body("return (a.cpu() @ b.cpu()).to('simgpu')"))

    assert launched[0].flop(V100) == 0
    assert launched[0].n_copies == 3
    assert launched[0].uploaded_bytes == N * N * 4


def test_values_slipped_in_by_torch_tensor_are_counted(cards):
    launched, _ = code_apart(
        cards, body("import torch\nreturn torch.tensor((a.cpu() @ b.cpu()).tolist(), device='simgpu')")
    )

    assert launched[0].flop(V100) == 0
    assert launched[0].uploaded_bytes >= N * N * 4


def test_skipped_work_shows_in_the_output_of_the_card(cards):
    launched, _ = code_apart(cards, body("import torch\nreturn torch.empty(64, 64, device='simgpu').zero_()"))

    assert launched[0].gave == [[0.0] * N] * N


def test_a_process_that_leaves_gets_one_sentence(cards):
    launched, sentence = code_apart(cards, body("import os\nos._exit(0)"))

    assert launched == []
    assert "ended its own process" in sentence


def test_garbage_on_the_socket_ends_the_run_in_one_sentence(cards):
    code = body(
        "import os\nfor fd in range(3, 40):\n    try: os.write(fd, b'x' * 64)\n    except OSError: pass\nreturn a @ b"
    )
    launched, sentence = code_apart(cards, code)

    assert launched == []
    assert "which torch never does" in sentence or "ended its own process" in sentence


# --- a socket without a program ---------------------------------------------------------------------------------


def after(cards: Cards, *messages: object, raw: bytes = b"", judged: bool = True, setup: bool = True) -> str:
    """What the judge hears after these messages, and nothing else, came over the socket."""
    card = cards.card(judged=judged)
    begun = [[1, "n", "p3.2xlarge"]] if setup else []
    lines = [json.dumps(m).encode() if not isinstance(m, bytes) else m for m in (*begun, *messages)]
    frames.send(card.socket, b"\n".join(lines), [raw] if raw else [])
    card.socket.settimeout(5)
    try:
        while card.socket.recv(1 << 16):
            pass
    except OSError:
        pass
    runs, sentence = card.runs()
    assert runs == []
    return sentence


def op(name: str, args: list[object], named: list[object] | None = None) -> list[object]:
    return [1, "o", 0, 0, name, args, named or [], None, None]


ON_CARD = [["device", {"v": 0}]]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"no json", "a message that is no JSON"),
        (b"[" * 100_000, "a message that is no JSON"),
        ([1], "a message without a kind"),
        ([1, "__class__"], "a message at the wrong time"),
        (op("aten::from_file", ["/etc/passwd", False, 10], ON_CARD), "an operator that a card doesn't have"),
        (op("os::system", ["true"]), "an operator that a card doesn't have"),
        (op("aten::__class__", []), "an operator that a card doesn't have"),
        (op("aten::add.Tensor", [1, 2]), "an operator on nothing of the card"),
        (op("aten::add.Tensor", [{"t": 12345}, 2]), "the number of a tensor that it doesn't have"),
        (op("aten::add.Tensor", [{"h": [0, 9, "float32", [9], [1], False]}, 2]), "longer than its bytes"),
        (op("aten::add.Tensor", [{"h": [0, 1, "float32", [9], [9], False]}, 2]), "longer than its bytes"),
        (op("aten::add.Tensor", [{"x": 1}]), "a value of no known kind"),
        ([1, "a", "step", [3]], "an entry that isn't a program's to make"),
        ([1, "a", "host", [Activity.PYTHON.value, "x", -(10**9)]], "a number out of bounds"),
        ([1, "a", "sync", ["x", 7]], "a stream that was never made"),
        ([1, "q", "__init__", []], "a question that no card answers"),
        ([1, "q", "memory", ["__class__", []]], "a question about memory"),
        ([1, "o", 6, 0, "aten::empty.memory_format", [[2]], ON_CARD, None, None], "an op of no known phase"),
        ([1, "e", None], "an end without a beginning"),
        ([1, "n", "p3.2xlarge"], "a run more than there is"),
        ([1, "w", 0, 0, 0, "eval", [], [], [], None], "a layer that a card doesn't have"),
        ([1, "b", 0, 0, 0, []], "a backward pass of nothing"),
        ([0, "f", "tf32", "tf32", "fp8"], "a precision that there isn't"),
    ],
)
def test_what_no_program_sends_ends_the_run(cards, message, said):
    assert said in after(cards, message)


def test_a_huge_frame_is_refused_before_it_is_read(cards):
    card = cards.card()
    card.socket.sendall(frames.HEAD.pack(1 << 31, 1 << 31))

    assert "a frame of 4,096 MiB" in card.runs()[1]


def test_half_a_frame_is_refused(cards):
    card = cards.card()
    card.socket.sendall(frames.HEAD.pack(100, 0) + b"[")

    assert "half a frame" in card.runs()[1]


def test_a_socket_closed_at_once_is_no_run(cards):
    assert cards.card().runs() == ([], "")


# --- a program that goes too far --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tight():
    with Cards(CardLimits(memory_mb=1500, cpu_s=20, n_ops=400)) as server:
        yield server


@pytest.fixture
def on_tight(tight):
    yield from program_on(tight)


def program_on(cards):
    card = cards.card()
    fd = card.socket.detach()
    session = remote.session_over(fd, "p3.2xlarge")
    try:
        with session:
            yield session
    finally:
        remote._lines.pop(fd).sock.close()
        card.runs()


def test_values_cant_be_read_before_the_counted_part(on_tight):
    import torch

    with pytest.raises(RuntimeError, match="neither before nor after"):
        torch.ones(2, device="simgpu").tolist()


def test_sizes_that_hang_on_values_cant_be_read_there_either(on_tight):
    import torch

    with pytest.raises(RuntimeError, match="neither before nor after"):
        torch.ones(2, device="simgpu").nonzero()


def add_often(x):
    for _ in range(1000):
        x.add_(1)
    return x.tolist()


def test_a_flood_of_operations_ends_the_run(on_tight):
    import torch

    x = torch.ones(2, device="simgpu")
    with pytest.raises(CardGone):
        add_often(x)


def test_a_result_too_large_for_the_process_is_an_error_in_words(on_tight):
    import torch

    with pytest.raises(RuntimeError, match="no room for this result"):
        torch.empty(1 << 29, device="simgpu")


def test_a_provoked_error_counts_as_a_wait(cards):
    import torch

    from tests.simgpu.remote.bridge import run_apart

    with run_apart(cards) as (_, tapes):
        x, places = torch.ones(3, device="simgpu"), torch.tensor([7]).to("simgpu")
        with pytest.raises(IndexError):
            x[places]

    assert "error" in [getattr(entry, "name", "") for entry in tapes[0].entries]
