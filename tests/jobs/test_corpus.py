"""The sentences we train on: grammatical, different, short enough and the same for the same seed."""

from __future__ import annotations

import pytest

from gpututor.errors import CorpusTooSmall
from gpututor.jobs.corpus import KINDS, MAX_WORDS, TUTORIAL_PAIRS, draw, words_of

PAIRS = draw(0)
EVERY = {pair.french: pair.english for kind in KINDS for pair in kind()}


# Written by hand, not read off the program.
@pytest.mark.parametrize(
    ("french", "english"),
    [
        pytest.param("il est fatigué .", "he is tired .", id="masculine"),
        pytest.param("elle est fatiguée .", "she is tired .", id="feminine"),
        pytest.param("elles sont fatiguées .", "they are tired .", id="feminine plural"),
        pytest.param("les garçons sont fatigués .", "the boys are tired .", id="masculine plural of a noun"),
        pytest.param("les filles sont heureuses .", "the girls are happy .", id="irregular feminine, plural"),
        pytest.param("ils sont heureux .", "they are happy .", id="an x stays in the plural"),
        pytest.param("elle est très fière .", "she is very proud .", id="accent on the feminine"),
        pytest.param("l'homme est jaloux .", "the man is jealous .", id="article elided before mute h"),
        pytest.param("la reine boit l'eau .", "the queen drinks the water .", id="article elided before a vowel"),
        pytest.param("j'ai faim .", "i am hungry .", id="je elided"),
        pytest.param("je n'ai pas soif .", "i am not thirsty .", id="ne elided"),
        pytest.param("je ne suis pas malade .", "i am not ill .", id="ne kept before a consonant"),
        pytest.param("elle n'a pas d'ami .", "she does not have a friend .", id="de elided after a denial"),
        pytest.param("nous n'avons pas de chat .", "we do not have a cat .", id="de kept before a consonant"),
        pytest.param("tu as une clé .", "you have a key .", id="feminine article"),
        pytest.param("les enfants lisent l'histoire .", "the children read the story .", id="irregular English plural"),
        pytest.param("les chevaux sont au marché .", "the horses are at the market .", id="irregular French plural"),
        pytest.param("elles sont infirmières .", "they are nurses .", id="trade in the feminine plural"),
        pytest.param("il est médecin .", "he is a doctor .", id="trade without an article in French"),
        pytest.param("elle est artiste .", "she is an artist .", id="an before a vowel"),
        pytest.param("êtes-vous prêtes ?", "are you ready ?", id="question by inversion"),
        pytest.param("n'écoute pas !", "do not listen !", id="denied order"),
        pytest.param("j'écris la lettre .", "i write the letter .", id="je elided before é"),
        pytest.param("il est calme aujourd'hui .", "he is calm today .", id="moment at the end"),
    ],
)
def test_french_and_english_agree(french, english):
    assert EVERY[french] == english


@pytest.mark.parametrize(
    "french",
    [
        "elle est fatigué .",
        "elles sont fatigués .",
        "je ai faim .",
        "je ne ai pas faim .",
        "le homme est grand .",
        "la eau est froide .",
        "les cheval sont grands .",
        "elle n'a pas un chat .",
        "il est un médecin .",
    ],
)
def test_wrong_agreement_is_never_made(french):
    assert french not in EVERY


def test_there_are_as_many_pairs_as_in_the_tutorial():
    assert len(PAIRS) == TUTORIAL_PAIRS == 10_599


def test_no_french_sentence_is_drawn_twice():
    assert len({pair.french for pair in PAIRS}) == len(PAIRS)


def test_each_french_sentence_of_the_grammar_has_one_translation():
    made = {(pair.french, pair.english) for kind in KINDS for pair in kind()}

    assert len(made) == len({french for french, _ in made})


def test_no_sentence_is_longer_than_the_model_reads():
    assert max(len(words_of(text)) for pair in PAIRS for text in (pair.french, pair.english)) <= MAX_WORDS


def test_lengths_run_from_two_to_nine_words():
    assert {len(words_of(pair.french)) for pair in PAIRS} == set(range(2, 10))


def test_no_length_makes_up_half_of_the_sentences():
    lengths = [len(words_of(pair.french)) for pair in PAIRS]

    assert max(lengths.count(n) for n in set(lengths)) < len(PAIRS) / 2


def test_words_put_together_give_the_sentence_back():
    for pair in PAIRS:
        assert "".join(words_of(pair.french)) == pair.french.replace(" ", "")


def test_the_same_seed_draws_the_same_sentences():
    assert draw(7, 500) == draw(7, 500)


def test_another_seed_draws_other_sentences():
    assert draw(7, 500) != draw(8, 500)


def test_more_pairs_than_the_grammar_makes_are_refused_with_both_numbers():
    with pytest.raises(CorpusTooSmall, match=r"1,000,000 different .* the grammar makes [\d,]+"):
        draw(0, 1_000_000)
