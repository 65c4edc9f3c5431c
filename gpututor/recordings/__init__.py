"""Runs of the lessons' experiments on a real GPU, as small files that replay where no GPU is.

`gpututor record` writes them. Each is a `Timeline` labelled "recorded", beside a description of the run.
"""

from gpututor.recordings.compared import Row, rows_of
from gpututor.recordings.course import EXPERIMENTS, LessonExperiment, of_lessons
from gpututor.recordings.kept import LessonRecording, keep, read, read_of
from gpututor.recordings.recorder import Outcome, Recorded, record, why_no_gpu

__all__ = [
    "EXPERIMENTS",
    "LessonExperiment",
    "LessonRecording",
    "Outcome",
    "Recorded",
    "Row",
    "keep",
    "of_lessons",
    "read",
    "read_of",
    "record",
    "rows_of",
    "why_no_gpu",
]
