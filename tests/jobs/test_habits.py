"""The loop of lesson 9: whoever watches, the same losses; and how each habit asks for them."""

from __future__ import annotations

import pytest
import torch

from gpututor.errors import ExperimentError
from gpututor.jobs.characters import FILLING, alphabet, batches, line, text
from gpututor.jobs.habits import EVERY, HABITS, Bar, Habit, Log, Training, add_up, check, read_a_step_later

CPU = torch.device("cpu")
each_habit = pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.key)


def losses(habit: Habit, n_steps: int = 3) -> list[float]:
    training = Training(habit, CPU, length=24, n_batches=2)
    return [float(training.step(k)) for k in range(n_steps)]


@pytest.fixture(scope="module")
def silent() -> list[float]:
    return losses(HABITS[0])


@each_habit
def test_whoever_watches_the_losses_are_the_same(habit, silent):
    assert losses(habit) == pytest.approx(silent, rel=1e-6)


def test_it_learns():
    first, *_, last = losses(HABITS[0], 12)

    assert last < first - 0.5


def test_a_sum_on_the_card_gives_the_mean_of_ten():
    log = Log()
    for k in range(2 * EVERY):
        add_up(torch.tensor(float(k)), log)

    assert log.numbers == [4.5, 14.5]  # the means of 0 to 9 and of 10 to 19


def test_a_sum_leaves_the_loss_as_it_was():
    loss = torch.tensor(2.0)
    log = Log()
    add_up(loss, log)
    add_up(loss, log)

    assert float(loss) == 2.0


def test_reading_a_step_later_lags_by_one():
    log = Log()
    for value in (3.0, 2.0, 1.0):
        read_a_step_later(torch.tensor(value), log)

    assert log.numbers == [3.0, 2.0]


def test_a_hidden_bar_shows_nothing():
    hidden, shown = Bar(hidden=True), Bar(hidden=False)
    for bar in (hidden, shown):
        bar.show(loss=2.5)

    assert (hidden.text, shown.text) == ("", "loss 2.500")


def test_a_loss_that_is_no_number_is_told():
    with pytest.raises(ExperimentError, match="lower the learning rate"):
        check(torch.tensor(float("nan")), Log())


def test_a_line_ends_with_a_whole_word():
    written = line(0, 40)
    words = text().split(" ")

    assert written.rstrip(FILLING).split(" ")[-1] in words
    assert len(written) == 40


def test_the_filling_is_the_first_of_the_alphabet_and_in_no_text():
    assert alphabet()[0] == FILLING
    assert FILLING not in text()


def test_a_batch_has_one_character_more_than_are_guessed():
    first, second = batches(2, length=24, batch=3)

    assert first.shape == second.shape == (25, 3)
