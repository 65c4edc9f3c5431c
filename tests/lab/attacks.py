"""Attacks on whoever runs a learner's code: what each does, and the exact outcome that it must have.

Each body is that of `f(given)`, where `given` holds what the test has put beside the sandbox to be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TIMEOUT_S, MEMORY_MB = 1.0, 512
PATIENT_S = 15.0  # where another limit is to be met first: filling 512 MiB took more than 1 s of a loaded processor
TOO_LONG = "Your code still ran after 1 s, so it was stopped; is there a loop without an end?"
TOO_MANY = "Your code started more than 16 processes, so it was stopped; it needs none."
TOO_MUCH = "Your code asked for more memory than the 512 MiB it may have; does a list grow without an end?"
PRINTED = "Your code printed more than 1 MiB, so it was stopped; is there a print in a loop without an end?"
LARGE = "Your function gave back more than 4 MiB, so it was stopped; give back only what is asked."
KEEPER = "Your code ended the process that had started it, so there is no answer; leave that one alone."
DEEP = "Your function gave back lists in lists, more than 100 deep; give back only what is asked."
ENDED = "Your code ended its own process ({}) before it gave an answer."
FORGED = (
    "import os, sys\nframe = sys._getframe()\nwhile 'fd' not in frame.f_locals:\n    frame = frame.f_back\n"
    "seen = frame.f_locals\nos.write(seen['fd'], (seen['request']['mark'] + '{{\"values\": {}}}').encode())\n"
    "os._exit(0)"
)


@dataclass(frozen=True)
class Attack:
    """What the code does, what must come of it (a value, or else a sentence), and the processor time it may take."""

    body: str
    value: Any = None
    sentence: str | None = None
    cut: str | None = None
    timeout_s: float = TIMEOUT_S


ATTACKS = {
    "os._exit": Attack("import os\nos._exit(0)", sentence=ENDED.format("exit code 0")),
    "sys.exit": Attack(
        "import sys\nsys.exit(0)",
        sentence="Line 3 (sys.exit(0)): your code called sys.exit, so there is no answer; let the function return.",
    ),
    "crash": Attack(
        "import faulthandler\nfaulthandler._sigsegv()", sentence=ENDED.format("signal 11, segmentation fault")
    ),
    "endless loop": Attack("while True:\n    pass", sentence=TOO_LONG, cut="time"),
    "endless loop that ignores signals": Attack(
        "import signal\n"
        "for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "while True:\n    pass",
        sentence=TOO_LONG,
        cut="time",
    ),
    "loop in a child": Attack(
        "import os\nif os.fork() == 0:\n    while True:\n        pass\nos.wait()", sentence=TOO_LONG, cut="time"
    ),
    "endless sleep": Attack("import time\ntime.sleep(1000)", sentence=TOO_LONG, cut="time"),
    "stopped by itself": Attack(
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", sentence=TOO_LONG, cut="time"
    ),
    "fork bomb": Attack(
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
        sentence=TOO_MANY,
        cut="processes",
    ),
    "daemons": Attack(
        "import os, time\n"
        "for _ in range(40):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(1000)\ntime.sleep(1000)",
        sentence=TOO_MANY,
        cut="processes",
    ),
    "10 GB": Attack("return len(bytearray(10**10))", sentence=f"Line 2 (return len(bytearray(10**10))): {TOO_MUCH}"),
    "10 GB in pieces": Attack(
        "a = []\nwhile True:\n    a.append(bytes(2**20))", sentence=f"Line 4 (a.append(bytes(2**20))): {TOO_MUCH}"
    ),
    "10 GB of shared memory": Attack(
        "import mmap\nm = mmap.mmap(-1, 10**10)\n"
        "for k in range(0, 10**10, 2**20):\n    m[k : k + 2**20] = bytes(2**20)",
        sentence=TOO_MUCH,
        cut="memory",
        timeout_s=PATIENT_S,
    ),
    "1 GB of output": Attack(
        "import os\nfor _ in range(2**10):\n    os.write(1, bytes(2**20))", sentence=PRINTED, cut="output"
    ),
    "1 GB of answer": Attack("return 'x' * 10**8", sentence=LARGE, cut="answer"),
    "an answer without an end": Attack(
        "import os\nwhile True:\n    for fd in range(3, 20):\n        try:\n            os.write(fd, bytes(2**20))\n"
        "        except OSError:\n            pass",
        sentence=LARGE,
        cut="answer",
    ),
    "lists in lists": Attack("a = []\nfor _ in range(900):\n    a = [a]\nreturn a", sentence=DEEP),
    "half a character": Attack("return '\\ud800'", value="\ufffd"),
    "the network": Attack(
        "import socket\n"
        "try:\n    socket.create_connection(('127.0.0.1', given['port']), 5)\n"
        "except OSError as error:\n    return type(error).__name__",
        value="ConnectionRefusedError",
    ),
    "a name on the network": Attack(
        "import socket\ntry:\n    socket.getaddrinfo('example.org', 80)\nexcept socket.gaierror:\n    return 'no'",
        value="no",
    ),
    "links to the network": Attack("import socket\nreturn [name for _, name in socket.if_nameindex()]", value=["lo"]),
    "files of others": Attack(
        "import os\nreturn [path for path in given['secrets'] if os.path.exists(path)]", value=[]
    ),
    "the judge": Attack(
        "import importlib\nfound = []\n"
        "for name in given['judges']:\n    try:\n        found.append(importlib.import_module(name).__file__)\n"
        "    except ImportError:\n        pass\nreturn found",
        value=[],
    ),
    "the environment of others": Attack(
        "import glob\n"
        "said = b''\n"
        "for path in glob.glob('/proc/*/environ') + glob.glob('/proc/*/task/*/environ'):\n"
        "    try:\n        said += open(path, 'rb').read()\n    except OSError:\n        pass\n"
        "return given['token'].encode() in said",
        value=False,
    ),
    "writing outside": Attack(
        "import os, sys\nwrote = []\n"
        "for folder in ['/', '/dev', '/proc', '/usr/lib', sys.prefix, os.__file__[:-6], *given['folders']]:\n"
        "    try:\n        open(folder + '/x', 'w').write('x')\n        wrote.append(folder)\n"
        "    except OSError:\n        pass\nreturn wrote",
        value=[],
    ),
    "mounting": Attack(
        "import ctypes\nreturn ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        value=-1,
    ),
    "killing the starter": Attack(
        "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(1000)",
        sentence=KEEPER,
        cut="keeper",
    ),
    "killing everybody": Attack(
        "import os, signal\nos.kill(-1, signal.SIGKILL)\nreturn 1", sentence=KEEPER, cut="keeper"
    ),
    "stopping the starter": Attack(
        "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nreturn 1", sentence=TOO_LONG, cut="time"
    ),
    "looking into the starter": Attack(
        "import ctypes, os\nstarter, found = os.getppid(), []\n"
        "for part in ('mem', 'environ', 'maps', 'fd/3'):\n"
        "    try:\n        open(f'/proc/{starter}/{part}', 'rb').close()\n        found.append(part)\n"
        "    except OSError:\n        pass\n"
        "return found, ctypes.CDLL(None).ptrace(16, starter, 0, 0)",  # 16: PTRACE_ATTACH
        value=[[], -1],
    ),
    "patched json and write": Attack(
        "import json, os, sys\n"
        "json.dumps = json.JSONEncoder.encode = lambda *_, **__: '{\"values\": [42]}'\n"
        "os.write = lambda fd, text: len(text)\nsys.stdout = sys.stderr = None\nreturn 1",
        value=1,
    ),
    "an answer on every descriptor": Attack(
        "import os\nfor fd in range(3, 300):\n    try:\n        os.write(fd, b'{\"values\": [42]}')\n"
        "    except OSError:\n        pass\nreturn 1",
        value=1,
    ),
    "an answer on every descriptor, and out": Attack(
        "import os\nfor fd in range(3, 300):\n    try:\n        os.write(fd, b'{\"values\": [42]}')\n"
        "    except OSError:\n        pass\nos._exit(0)",
        sentence=ENDED.format("exit code 0"),
    ),
    "two values for one": Attack(FORGED.format("[1, 2]"), sentence=ENDED.format("exit code 0")),
    "a forger who has found the mark of its own answer": Attack(FORGED.format("[42]"), value=42),
    "a thread that outlives": Attack(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\nreturn 1", value=1
    ),
    "a process that outlives": Attack(
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True:\n            time.sleep(1)\n"
        "    os._exit(0)\nos.wait()\nreturn 1",
        value=1,
    ),
    "a full disk": Attack(
        "import os, tempfile\nerrors = []\n"
        "for folder in ('/tmp', '/dev/shm'):\n    try:\n        for k in range(10**4):\n"
        "            open(f'{folder}/{k}', 'wb').write(bytes(2**23))\n"
        "    except OSError as error:\n        errors.append(error.errno)\nreturn errors",
        value=[28, 28],
    ),
    "a large file": Attack(
        "try:\n    with open('x', 'wb') as file:\n        for _ in range(1000):\n            file.write(bytes(2**20))\n"
        "except OSError as error:\n    return error.errno",
        value=27,
    ),
    "folders that can't be opened": Attack(
        "import os\nos.makedirs('a/b/c')\nos.chmod('a/b', 0)\nos.chmod('a', 0)\nos.symlink('/', 'd')\nreturn 1", value=1
    ),
    "deep folders": Attack("import os\nfor _ in range(3000):\n    os.mkdir('a')\n    os.chdir('a')\nreturn 1", value=1),
}
