"""Whole scripts under `gpututor run`, each in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest


def under_python(folder, environment, *arguments):
    """The same script without gpututor."""
    words = [sys.executable, "train.py", *arguments]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_losses_are_those_of_the_cpu(run, loop, tmp_path, environment):
    source = loop("for _ in range(6): print('loss', step())")
    done = run(source)
    plain = under_python(tmp_path, environment)

    assert [line for line in done.err.splitlines() if line.startswith("loss")] == plain.stdout.splitlines()


def test_every_nanosecond_of_the_kept_steps_is_accounted(run, loop):
    report = run(loop("for _ in range(6): step()")).report

    assert report["steps"] | {"step_ns": 0, "losses": 0} == {
        "found_by": "optimizer",
        "n_run": 6,
        "n_left_out": 1,
        "n_kept": 5,
        "step_ns": 0,
        "losses": 0,
    }
    assert sum(report["accounts_ns"].values()) == report["window_ns"]
    assert len(report["steps"]["losses"]) == 5


def test_a_run_stops_after_its_steps_and_finally_blocks_run(run, loop):
    done = run(
        loop(
            """
            try:
                while True: step()
            except Exception:
                print("the script saw an exception")
            finally:
                print("cleaned up")
            """
        ),
        "--steps",
        "3",
        "--skip",
        "2",
    )

    assert done.status == 0
    assert "cleaned up" in done.err
    assert "saw an exception" not in done.err
    assert (done.report["steps"]["n_run"], done.report["steps"]["n_kept"]) == (5, 3)
    assert done.report["ended"]["stopped"] == "after 3 steps, as asked"


def test_two_optimizers_a_round_are_one_step_a_round(run):
    done = run(
        """
        import torch
        nets = [torch.nn.Linear(4, 4).cuda() for _ in range(2)]
        optimizers = [torch.optim.Adam(net.parameters()) for net in nets]
        for _ in range(5):
            for net, optimizer in zip(nets, optimizers):
                optimizer.zero_grad()
                net(torch.randn(2, 4, device="cuda")).mean().backward()
                optimizer.step()
        """
    )

    assert done.report["steps"]["n_run"] == 5


def test_mixed_precision_with_a_scaler_counts_each_step_once(run):
    done = run(
        """
        import torch
        net = torch.nn.Linear(4, 4).cuda()
        optimizer, scaler = torch.optim.SGD(net.parameters(), 0.1), torch.cuda.amp.GradScaler()
        for _ in range(4):
            with torch.autocast("cuda"):
                loss = net(torch.ones(2, 4).cuda()).float().square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            print("loss", loss.item())
        """
    )
    printed = [float(line.split()[1]) for line in done.err.splitlines() if line.startswith("loss")]

    assert done.report["steps"]["n_run"] == 4
    assert done.report["steps"]["losses"] == printed[1:]  # as the script sees them, without the scale


def test_a_loop_without_an_optimizer_is_counted_by_its_backward_passes(run):
    done = run(
        """
        import torch
        weight = torch.zeros(3, device="cuda", requires_grad=True)
        for _ in range(4):
            (weight - 1).square().sum().backward()
            weight.data.add_(weight.grad, alpha=-0.1)
        """
    )

    assert (done.report["steps"]["found_by"], done.report["steps"]["n_run"]) == ("backward", 4)


def test_marks_of_the_script_replace_what_is_found(run, loop):
    done = run(
        loop(
            """
            import gpututor
            for _ in range(3):
                step(); step()
                gpututor.step(n_samples=8)
            """
        )
    )

    assert (done.report["steps"]["found_by"], done.report["steps"]["n_run"]) == ("marked", 3)


def test_without_any_step_the_whole_run_is_one_window(run):
    report = run("import torch; torch.ones(3, device='cuda').add(1).sum().item()").report

    assert report["steps"]["found_by"] is None
    assert report["window_ns"] > 0
    assert "the whole run is one window" in report["notes"][0]


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        pytest.param("import sys; sys.exit(3)", 3, id="sys.exit"),
        pytest.param("import os; os._exit(5)", 5, id="os._exit"),
        pytest.param("raise ValueError('no such corpus')", 1, id="exception"),
    ],
)
def test_a_script_keeps_its_exit_status_and_what_it_did_until_then(run, loop, ending, status):
    done = run(loop(f"step(); step(); step()\n{ending}"))

    assert done.status == status
    assert done.report["steps"]["n_kept"] == 2


def test_a_traceback_looks_as_under_python(run, script, tmp_path, environment):
    source = "def load():\n    raise ValueError('no such corpus')\n\nload()\n"
    done = run(source)
    plain = under_python(tmp_path, environment)

    assert done.err == plain.stderr
    assert done.report["ended"]["error"] == "ValueError: no such corpus"


def test_a_syntax_error_looks_as_under_python(run, tmp_path, environment):
    done = run("x = = 1\n")
    plain = under_python(tmp_path, environment)

    assert (done.status, done.err) == (1, plain.stderr)


def test_a_process_that_is_killed_ends_only_itself(run, loop):
    done = run(loop("import os, signal, time\nstep(); step(); time.sleep(0.3); step()\nos.kill(os.getpid(), 9)"))

    assert done.status == 128 + 9
    assert "is gone (signal 9" in done.report["why_no_ledger"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_endless_loop_without_steps_ends_after_its_seconds(run):
    done = run(
        """
        import torch
        x = torch.ones(2, device="cuda")
        try:
            while True: x = x + 1
        finally:
            print("cleaned up")
        """,
        "--seconds",
        "1",
    )

    assert done.status == 0
    assert "cleaned up" in done.err
    assert done.report["ended"]["stopped"] == "after 1 s, as asked"
    assert done.report["n_kernels"] > 0


def test_a_script_that_never_uses_the_card_hears_what_to_do(run):
    done = run("import torch; torch.ones(3).sum()")

    assert done.status == 0
    assert "launched nothing on the simulated A100-SXM4-80GB; is the device set?" in done.report["why_no_ledger"]


def test_main_arguments_paths_and_threads_are_those_of_python(run, tmp_path, environment):
    source = """
        import argparse, os, pickle, sys, threading

        class Batch: pass

        def show():
            print(sys.argv, __name__, __file__, __spec__, os.getcwd(), sys.path[0], threading.current_thread().name)
            print(pickle.loads(pickle.dumps(Batch())).__class__.__module__, sys.modules["__main__"].Batch is Batch)
            print(os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("PYTHONPATH"))

        if __name__ == "__main__":
            parser = argparse.ArgumentParser()
            parser.add_argument("--json", action="store_true")
            parser.add_argument("--steps", type=int)
            print(parser.parse_args())
            show()
            threading.Thread(target=show).start()
    """
    arguments = ("--json", "--steps", "7")
    done = run(source, arguments=arguments)
    plain = under_python(tmp_path, environment, *arguments)

    assert done.err == plain.stdout


def test_a_module_runs_as_under_python_m(script, command):
    script("", "package/__init__.py")
    script("from package import tools\ntools.show()", "package/train.py")
    script("import sys\ndef show(): print(sys.argv[1:], sys.modules['__main__'].__spec__.name)", "package/tools.py")
    _, err = command("--json", "-m", "package.train", "--epochs", "1").communicate(timeout=60)

    assert err == "['--epochs', '1'] package.train\n"


def test_steps_of_a_thread_are_seen_and_stopped(run, loop):
    done = run(
        loop(
            """
            import threading
            def train():
                while True: step()
            worker = threading.Thread(target=train)
            worker.start()
            worker.join()
            print("joined")
            """
        ),
        "--steps",
        "3",
    )

    assert done.status == 0
    assert done.report["steps"]["n_kept"] == 3
    assert done.err.endswith("joined\n")


def test_a_full_card_is_an_error_of_the_script_and_what_ran_before_is_accounted(run, loop):
    done = run(loop("for _ in range(3): step()\ntorch.empty(90 * 2**30, dtype=torch.uint8, device='cuda')"))

    assert done.status == 1
    assert "OutOfMemoryError" in done.report["ended"]["error"]
    assert done.report["steps"]["n_kept"] == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_stops_the_script_and_still_reports(script, command, loop):
    script(loop("import time\nwhile True:\n    step()\n    print('stepped', flush=True)\n    time.sleep(0.02)"))
    process = command("--json", "train.py", start_new_session=True)
    while "stepped" not in process.stderr.readline():
        pass
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    assert json.loads(out)["ended"]["stopped"] == "by Ctrl-C"
    assert json.loads(out)["steps"]["n_kept"] > 0


def test_two_runs_give_the_same_timeline_to_the_byte(script, command, loop, tmp_path):
    script(loop("for _ in range(5): step()"))
    for name in ("one", "two"):
        command("--save", f"{name}.json", "train.py").communicate(timeout=60)

    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert (tmp_path / "one.tape.gz").exists()
