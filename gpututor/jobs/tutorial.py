"""The sizes of PyTorch's seq2seq tutorial, which the asker's job keeps; no torch needed to read them."""

from __future__ import annotations

from gpututor.jobs.corpus import MAX_WORDS

# Source of the next seven: the tutorial named above and its published output (10,599 pairs, 2018 to 2023).
HIDDEN = 256
DROPOUT = 0.1
LEARNING_RATE = 0.01
TEACHER_FORCING = 0.5
MAX_LENGTH = MAX_WORDS + 1  # words, marks and the end mark
FRENCH_WORDS = 4_345  # "Counted words: fra 4345"
ENGLISH_WORDS = 2_803  # "Counted words: eng 2803"
TUTORIAL_STEPS = 75_000
