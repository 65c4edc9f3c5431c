import pytest

from gpututor.timeline import Activity, KernelWork, LaneKind
from tests.draw import US, draw


def test_a_run_of_one_character_is_one_span():
    (span,) = draw(gpu="..###.").spans

    assert (span.activity, span.start_ns, span.end_ns) == (Activity.KERNEL, 2 * US, 5 * US)


def test_a_change_of_character_starts_a_new_span():
    spans = draw(host="IIPP").spans

    assert [(s.activity, s.start_ns, s.end_ns) for s in spans] == [
        (Activity.INPUT, 0, 2 * US),
        (Activity.PYTHON, 2 * US, 4 * US),
    ]


def test_the_same_letter_on_host_and_gpu_links_launch_and_kernel():
    launch, kernel = draw(host="a..", gpu=".aa").spans

    assert launch.activity is Activity.LAUNCH
    assert kernel.activity is Activity.KERNEL
    assert launch.launch == kernel.launch is not None


def test_the_prefix_of_a_row_gives_the_kind_of_its_lane():
    lanes = draw(host_main=".", gpu_side=".", copy_in=".", link_pcie=".").lanes

    assert [lane.kind for lane in lanes] == [LaneKind.HOST, LaneKind.STREAM, LaneKind.COPY, LaneKind.LINK]


def test_a_tuple_of_rows_lies_on_one_lane():
    timeline = draw(host=("IIII", ".DD."))

    assert len(timeline.lanes) == 1
    assert {s.lane for s in timeline.spans} == {0}


def test_the_window_is_given_in_characters():
    assert draw(gpu="####", window=(1, 3)).window_ns == (1 * US, 3 * US)


def test_each_run_in_the_row_of_steps_is_a_step():
    steps = draw(gpu="......", steps="112222", n_samples=8).steps

    assert [(s.start_ns, s.end_ns, s.n_samples) for s in steps] == [(0, 2 * US, 8), (2 * US, 6 * US, 8)]


def test_one_work_goes_to_every_kernel():
    work = KernelWork(n_blocks=7)

    assert [s.work for s in draw(gpu="#.#", work=work).spans] == [work, work]


def test_rows_of_different_length_are_refused():
    with pytest.raises(ValueError, match="equally long"):
        draw(gpu="##", host="...")


def test_a_character_without_meaning_is_refused():
    with pytest.raises(ValueError, match="'I' has no meaning on a stream row"):
        draw(gpu="I")
