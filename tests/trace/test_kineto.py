"""A trace becomes a timeline: small written ones by counting; recorded ones are in test_recorded."""

from __future__ import annotations

import gzip
import json

import pytest

from gpututor.errors import NoKernels, TimelineError
from gpututor.timeline import Activity, LaneKind, Origin
from gpututor.trace import events, read

US = 1000
ON_GPU = (
    Activity.KERNEL,
    Activity.COLLECTIVE,
    Activity.MEMSET,
    Activity.COPY_TO_GPU,
    Activity.COPY_TO_HOST,
    Activity.COPY_ON_GPU,
)


def event(cat, name, ts, dur, pid=1, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}


def kernel(name="gemm", ts=100, dur=20, stream=7, **args):
    return event("kernel", name, ts, dur, 0, stream, device=0, stream=stream, **args)


def copy(name, ts, dur, **args):
    return event("gpu_memcpy", name, ts, dur, 0, 7, device=0, stream=7, **args)


def call(name, ts, dur, **args):
    return event("cuda_runtime", name, ts, dur, **args)


def activities(*events, **more):
    """Activities on host threads, in stored order, of a trace of these events and one kernel."""
    timeline = read([kernel(), *events], **more)
    return [s.activity for s in timeline.spans if timeline.lanes[s.lane].kind is LaneKind.HOST]


# --- time -----------------------------------------------------------------------------------------------------------


def test_the_window_without_steps_runs_from_the_first_to_the_last_gpu_event():
    timeline = read([call("cudaLaunchKernel", 90, 5), kernel(ts=100, dur=20), kernel(ts=150, dur=30)])

    assert timeline.duration_ns == (180 - 100) * US
    assert timeline.steps == ()


def test_the_window_with_steps_is_theirs():
    marks = [event("user_annotation", f"ProfilerStep#{k}", 1000 * k, 900) for k in (3, 4)]

    timeline = read([kernel(ts=3500), *marks])

    assert timeline.duration_ns == (4900 - 3000) * US


def test_a_step_lasts_until_the_next_one_begins():
    marks = [event("user_annotation", f"ProfilerStep#{k}", 1000 * k, 900) for k in (3, 4)]

    first, last = read([kernel(ts=3500), *marks]).steps

    assert (first.end_ns - first.start_ns, last.end_ns - last.start_ns) == (1000 * US, 900 * US)


def test_marks_on_the_gpu_are_no_steps():
    assert read([kernel(), event("gpu_user_annotation", "ProfilerStep#3", 0, 900)]).steps == ()


def test_times_are_exact_to_the_nanosecond(tmp_path):
    path = tmp_path / "trace.json"
    text = json.dumps([kernel(ts=1, dur=2)]).replace('"ts": 1', '"ts": 1712195495505543.201')
    path.write_text(text.replace('"dur": 2', '"dur": 1.003'))

    assert read(path).duration_ns == 1_003


def test_times_may_be_written_in_quotes():
    assert read([kernel(ts="100", dur="20.5")]).duration_ns == 20_500


# --- what is what ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cat", "name", "activity"),
    [
        ("kernel", "volta_sgemm_128x64_nn", Activity.KERNEL),
        ("Kernel", "volta_sgemm_128x64_nn", Activity.KERNEL),
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Activity.COLLECTIVE),
        ("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", Activity.COLLECTIVE),
        ("gpu_memset", "Memset (Device)", Activity.MEMSET),
        ("Memset", "Memset (Device)", Activity.MEMSET),
        ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", Activity.COPY_TO_GPU),
        ("Memcpy", "Memcpy DtoH (Device -> Pinned)", Activity.COPY_TO_HOST),
        ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", Activity.COPY_ON_GPU),
    ],
)
def test_gpu_work_is_told_by_category_and_name(cat, name, activity):
    spans = read([kernel("other"), event(cat, name, 200, 5, 0, 7, device=0, stream=7)]).spans

    assert spans[1].activity is activity


@pytest.mark.parametrize(
    ("host", "activity"),
    [
        (event("cpu_op", "aten::mm", 50, 9), Activity.DISPATCH),
        (event("Operator", "aten::mm", 50, 9), Activity.DISPATCH),
        (event("python_function", "train.py(12): step", 50, 9), Activity.PYTHON),
        (call("cudaLaunchKernel", 50, 9), Activity.LAUNCH),
        (call("hipLaunchKernel", 50, 9), Activity.LAUNCH),
        (event("cuda_driver", "cuLaunchKernelEx", 50, 9), Activity.LAUNCH),
        (event("Runtime", "cudaStreamSynchronize", 50, 9), Activity.SYNC),
        (call("cudaDeviceSynchronize", 50, 9), Activity.SYNC),
        (call("hipEventSynchronize", 50, 9), Activity.SYNC),
        (call("cudaMalloc", 50, 9), Activity.STARTUP),
        (call("cudaStreamWaitEvent", 50, 9), Activity.DISPATCH),
        (
            event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 50, 9),
            Activity.INPUT,
        ),
        (event("Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 50, 9), Activity.INPUT),
        (event("user_annotation", "gpututor: next batch", 50, 9), Activity.INPUT),
    ],
)
def test_host_work_is_told_by_category_and_name(host, activity):
    assert activities(host) == [activity]


@pytest.mark.parametrize("cat", ["cuda_sync", "gpu_user_annotation", "Trace", "ac2g"])
def test_what_only_describes_other_records_is_no_work(cat):
    assert len(read([kernel(), event(cat, "Stream Wait Event", 110, 500, 0, 7)]).spans) == 1


def test_a_copy_call_that_came_back_when_the_copy_was_done_held_the_host():
    copied = copy("Memcpy HtoD (Pageable -> Device)", 60, 30, correlation=4)

    assert activities(copied, call("cudaMemcpyAsync", 50, 45, correlation=4)) == [Activity.COPY_CALL]


def test_a_copy_call_that_came_back_before_only_launched_it():
    copied = copy("Memcpy HtoD (Pinned -> Device)", 60, 30, correlation=4)

    assert activities(copied, call("cudaMemcpyAsync", 50, 5, correlation=4)) == [Activity.LAUNCH]


def test_a_short_copy_from_pinned_memory_holds_nobody():
    copied = copy("Memcpy HtoD (Pinned -> Device)", 51, 1, correlation=4)

    assert activities(copied, call("cudaMemcpyAsync", 50, 5, correlation=4)) == [Activity.LAUNCH]


def test_a_call_and_its_kernel_share_their_number():
    timeline = read([call("cudaLaunchKernel", 90, 5, correlation=77), kernel(correlation=77)])

    assert [s.launch for s in timeline.spans] == [77, 77]


def test_copies_lie_on_a_lane_for_each_direction_and_kernels_on_their_stream():
    timeline = read(
        [
            kernel(stream=7),
            kernel(stream=20, ts=300),
            copy("Memcpy HtoD (Pinned -> Device)", 60, 30),
            copy("Memcpy DtoH (Device -> Pinned)", 60, 30),
            copy("Memcpy DtoD (Device -> Device)", 400, 30),
        ]
    )

    names = [timeline.lanes[s.lane].name for s in timeline.spans]
    assert names == ["stream 7", "stream 20", "copies to the GPU", "copies to the host", "stream 7"]


def test_a_host_thread_is_named_as_the_trace_names_it():
    name = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "thread 1 (python)"}}

    timeline = read([kernel(), name, event("cpu_op", "aten::mm", 50, 9)])

    assert [lane.name for lane in timeline.lanes if lane.kind is LaneKind.HOST] == ["thread 1 (python)"]


def test_streams_of_two_gpus_are_told_apart():
    other = event("kernel", "gemm", 100, 20, 1, 7, device=1, stream=7)

    assert [lane.device for lane in read([kernel(), other]).lanes] == [0, 1]


@pytest.mark.parametrize(
    "record",
    [
        call("cudaLaunchKernel", 1, 1),
        kernel(),
        event("user_annotation", "said", 1, 1),
        {"ph": "s", "name": "ac2g"},
        {"ph": "M", "name": "thread_name", "args": {"name": "one"}},
    ],
)
def test_more_records_of_any_kind_than_memory_is_for_are_refused(monkeypatch, record):
    monkeypatch.setattr(events, "MOST_EVENTS", 100)

    with pytest.raises(TimelineError, match="more than 100 events"):
        read([record | {"ts": k, "pid": k} for k in range(200)])


# --- work and label -------------------------------------------------------------------------------------------------

V100 = {
    "id": 0,
    "name": "Tesla V100-SXM2-16GB",
    "computeMajor": 7,
    "computeMinor": 0,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 98304,
    "warpSize": 32,
    "numSms": 80,
}


def work(device=V100, name="gemm", **args):
    (span,) = read({"deviceProperties": [device], "traceEvents": [kernel(name, **args)]}).spans
    return span.work


def test_blocks_are_counted_over_the_whole_grid():
    assert work(grid=[10, 4, 2], block=[256, 1, 1]).n_blocks == 80


@pytest.mark.parametrize(
    ("args", "blocks_per_sm"),
    [
        pytest.param({"block": [256, 1, 1]}, 8, id="2048 threads"),
        pytest.param({"block": [32, 1, 1]}, 32, id="32 block slots"),
        pytest.param({"block": [256, 1, 1], "registers per thread": 128}, 2, id="65536 registers"),
        pytest.param({"block": [256, 1, 1], "registers per thread": 122}, 2, id="registers in units of 256 a warp"),
        pytest.param({"block": [128, 1, 1], "shared memory": 49152}, 2, id="96 KiB of shared memory"),
        pytest.param({"block": [96, 1, 1]}, 21, id="whole blocks only"),
    ],
)
def test_blocks_on_an_sm_are_limited_by_the_scarcest_resource(args, blocks_per_sm):
    assert work(grid=[1000, 1, 1], **args).blocks_per_sm == blocks_per_sm


def test_blocks_on_an_sm_are_not_known_without_the_cards_properties():
    assert work({"id": 0, "name": "?"}, grid=[10, 1, 1], block=[256, 1, 1]).blocks_per_sm is None


def test_flop_and_bytes_of_a_kernel_are_not_known():
    assert (work().flop, work().moved_bytes) == (None, None)


def test_bytes_of_a_copy_are():
    spans = read([kernel(), copy("Memcpy HtoD (Pinned -> Device)", 60, 30, bytes=4096)]).spans

    assert spans[1].work.moved_bytes == 4096


@pytest.mark.parametrize(
    ("name", "number_format", "tensor_core"),
    [
        ("volta_sgemm_128x64_nn", "fp32", False),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "fp16", True),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "bf16", True),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x8_tensor16x8x8", "tf32", True),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>", None, True),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", None, None),
    ],
)
def test_format_and_tensor_cores_are_known_where_the_name_says_them(name, number_format, tensor_core):
    assert (work(name=name).number_format, work(name=name).tensor_core) == (number_format, tensor_core)


def test_the_label_has_card_sms_file_and_versions(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"cuda_driver_version": 12040, "deviceProperties": [V100], "traceEvents": [kernel()]}))

    label = read(path).label

    assert (label.origin, label.card, label.n_sms, label.what) == (Origin.RECORDED, "V100-SXM2-16GB", 80, "mine.json")
    assert label.versions == (("CUDA driver", "12.4"),)


def test_a_card_not_in_our_table_keeps_the_drivers_name():
    timeline = read({"deviceProperties": [{"id": 0, "name": "NVIDIA A100-PG509-200"}], "traceEvents": [kernel()]})

    assert timeline.label.card == "NVIDIA A100-PG509-200"


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"{}", "no traceEvents", id="other JSON"),
        pytest.param(b"[]", "no event at all", id="no events"),
        pytest.param(b'{"traceEvents": 7}', "holds a int", id="no list"),
        pytest.param(b'{"traceEvents": [', "no whole record in it: the file ends in the middle", id="cut off"),
        pytest.param(b'{"traceEvents": x', "stops being JSON at line 1", id="no JSON"),
        pytest.param(b"[" * 200_000, "no whole record in it", id="nested without end"),
        pytest.param(b"[" * 200_000 + b"]" * 200_000, "nests too deeply", id="nested"),
        pytest.param(gzip.compress(b"[1, 2, 3]")[:-9], "the gzip file ends in the middle", id="cut-off gzip"),
        pytest.param(b"\x1f\x8b\x08\x00rubbish and more rubbish", "damaged gzip", id="damaged gzip"),
        pytest.param(b"[1, 2]", "none of the events", id="records of another kind"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_in_a_sentence(tmp_path, content, words):
    path = tmp_path / "trace.json"
    path.write_bytes(content)

    with pytest.raises(TimelineError, match=words):
        read(path)


def test_a_missing_file_is_refused_with_its_path():
    with pytest.raises(TimelineError, match=r"nowhere\.json can't be read: No such file"):
        read("nowhere.json")


def test_a_trace_without_kernels_says_how_to_record_them():
    with pytest.raises(NoKernels, match=r"1 framework operators but no kernel.*ProfilerActivity\.CUDA"):
        read([event("cpu_op", "aten::mm", 50, 9)])


def test_launches_without_kernels_are_the_profilers_fault_not_the_programs():
    with pytest.raises(TimelineError, match="2 launch calls but not one kernel"):
        read([call("cudaLaunchKernel", 50, 9), call("cudaLaunchKernel", 60, 9)])


def test_gzip_is_recognised_by_content_not_by_name(tmp_path):
    packed, plain = tmp_path / "packed.json", tmp_path / "plain.json.gz"
    packed.write_bytes(gzip.compress(json.dumps([kernel()]).encode()))
    plain.write_text(json.dumps([kernel()]))

    assert read(packed).spans == read(plain).spans


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        pytest.param(kernel(dur=-3), "last less than nothing left out: 1", id="negative duration"),
        pytest.param(kernel(dur="N/A"), "without a usable time left out: 1", id="no duration"),
        pytest.param(kernel(), "written twice counted once: 1", id="written twice"),
        pytest.param(17, "no trace event left out: 1", id="not an event"),
        pytest.param(kernel(ts=50, dur=9_999_999), "outlast the next one of their stream", id="overflowed duration"),
    ],
)
def test_what_is_left_out_is_counted_and_said(damaged, words):
    (loss,) = read([kernel(), damaged]).losses

    assert words in loss


def test_a_record_at_time_zero_does_not_stretch_the_window():
    hour_us = 3_600_000_000
    timeline = read([kernel(ts=2 * hour_us, dur=10), kernel(ts=0, dur=1)])

    assert timeline.duration_ns == 10 * US
    assert timeline.losses == ("records at time 0, where the profiler lost the time, left out: 1",)
