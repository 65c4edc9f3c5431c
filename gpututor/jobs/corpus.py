"""English–French sentence pairs from a small grammar of our own: no download, the same for the same seed.

The sentences are simple but agree in gender, number and person. No French
sentence is drawn twice, so each has one translation to learn.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gpututor.errors import CorpusTooSmall
from gpututor.jobs.french import ALLER, AVOIR, ETRE, Subject, agree, clause, elide, one, the, trade_name
from gpututor.jobs.words import (
    ADJECTIVES,
    BEINGS,
    DEGREES,
    FEELINGS,
    MOMENTS,
    ORDERS,
    OWNED,
    PLACES,
    THINGS,
    TRADES,
    VERBS,
    Noun,
    Trade,
)

# Sentences of the asker's job have at most 9 words and marks, so that with the end mark they fit into 10.
# Source: MAX_LENGTH = 10 in PyTorch's tutorial "Translation with a Sequence to Sequence Network and Attention".
MAX_WORDS = 9
# Pairs left after trimming, in that tutorial's published output (2018 to 2023).
TUTORIAL_PAIRS = 10_599

WORD = re.compile(r"aujourd'hui|\w+'|[\w-]+|[.?!]")


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence in both languages, lower case, its mark at the end."""

    english: str
    french: str


def words_of(sentence: str) -> list[str]:
    """The words and marks of a sentence; an elided word is a word of its own.

    >>> words_of("je n'ai pas faim .")
    ['je', "n'", 'ai', 'pas', 'faim', '.']
    """
    return WORD.findall(sentence)


def draw(seed: int = 0, n_pairs: int = TUTORIAL_PAIRS) -> tuple[Pair, ...]:
    """`n_pairs` different sentence pairs of at most 9 words and marks, in an order that the seed decides.

    Kinds of sentence take turns until one runs dry, so short and rare kinds aren't drowned by rich ones.

    Raises:
        CorpusTooSmall: the grammar doesn't yield that many different pairs.
    """
    chance = random.Random(seed)
    pools = [_shuffled(chance, kind()) for kind in KINDS]
    picked: dict[str, Pair] = {}
    while pools and len(picked) < n_pairs:
        for pool in pools:
            pair = pool.pop()
            picked.setdefault(pair.french, pair)
        pools = [pool for pool in pools if pool]
    if len(picked) < n_pairs:
        raise CorpusTooSmall(
            f"{n_pairs:,} different sentence pairs were asked for, but the grammar makes {len(picked):,}; "
            "ask for fewer, or add words to gpututor/jobs/words.py"
        )
    pairs = list(picked.values())[:n_pairs]
    chance.shuffle(pairs)
    return tuple(pairs)


def _shuffled(chance: random.Random, pairs: Iterable[Pair]) -> list[Pair]:
    fitting = [p for p in pairs if max(len(words_of(p.english)), len(words_of(p.french))) <= MAX_WORDS]
    chance.shuffle(fitting)
    return fitting


PRONOUNS = (
    *(Subject("i", "je", 0, g, 0) for g in "mf"),
    *(Subject("you", "tu", 1, g, 1) for g in "mf"),
    Subject("he", "il", 2, "m", 2),
    Subject("she", "elle", 2, "f", 2),
    *(Subject("we", "nous", 3, g, 3) for g in "mf"),
    *(Subject("you", "vous", 4, g, 1) for g in "mf"),
    Subject("they", "ils", 5, "m", 3),
    Subject("they", "elles", 5, "f", 3),
)


def plural_of(noun: Noun | Trade) -> str:
    """The English plural."""
    return noun.english_plural or noun.english + "s"


NAMED = (
    *(Subject(f"the {n.english}", the(n), 2, n.gender, 2) for n in BEINGS),
    *(Subject(f"the {plural_of(n)}", the(n, many=True), 5, n.gender, 3) for n in BEINGS),
)
SUBJECTS = PRONOUNS + NAMED

BE = ("am", "are", "is", "are")
HAVE = ("have", "have", "has", "have")


def _said(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _is(subject: Subject, negative: bool) -> str:
    return _said(subject.english, BE[subject.english_person], "not" if negative else "")


def _does(subject: Subject, verb: str, third: str, negative: bool) -> str:
    he = subject.english_person == 2
    if negative:
        return f"{subject.english} {'does' if he else 'do'} not {verb}"
    return f"{subject.english} {third if he else verb}"


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _states() -> Iterator[Pair]:
    for who in SUBJECTS:
        for adjective in ADJECTIVES:
            for degree, degre, deniable in DEGREES:
                for negative in (False, True) if deniable else (False,):
                    english = _said(_is(who, negative), degree, adjective.english, ".")
                    french = clause(who, ETRE[who.person], negative)
                    yield Pair(english, _said(french, degre, agree(adjective, who.gender, who.many), "."))


def _states_at_a_moment() -> Iterator[Pair]:
    for who in PRONOUNS:
        for adjective in ADJECTIVES[:24]:  # those after it don't change with the hour
            for when, quand in MOMENTS[1:]:
                for negative in (False, True):
                    english = _said(_is(who, negative), adjective.english, when, ".")
                    french = clause(who, ETRE[who.person], negative)
                    yield Pair(english, _said(french, agree(adjective, who.gender, who.many), quand, "."))


def _questions() -> Iterator[Pair]:
    for who in PRONOUNS[2:]:  # "suis-je" is written, not asked
        for adjective in ADJECTIVES:
            english = _said(BE[who.english_person], who.english, adjective.english, "?")
            verb = f"{ETRE[who.person]}-{who.french}"
            yield Pair(english, _said(verb, agree(adjective, who.gender, who.many), "?"))


def _trades() -> Iterator[Pair]:
    for who in PRONOUNS:
        many = who.english_person == 3  # "vous" is said to one person here, as "you" then is
        for trade in TRADES:
            for negative in (False, True):
                what = plural_of(trade) if many else _a(trade.english)
                metier = trade_name(trade, who.gender, many)
                french = clause(who, ETRE[who.person], negative)
                yield Pair(_said(_is(who, negative), what, "."), _said(french, metier, "."))


def _belongings() -> Iterator[Pair]:
    for who in SUBJECTS:
        for noun in OWNED:
            verb = AVOIR[who.person]
            english = _does(who, "have", "has", False)
            yield Pair(_said(english, _a(noun.english), "."), _said(clause(who, verb, False), one(noun), "."))
            english = _does(who, "have", "has", True)
            without = elide("de", noun.french)
            yield Pair(_said(english, _a(noun.english), "."), _said(clause(who, verb, True), without, "."))


def _feelings() -> Iterator[Pair]:
    for who in SUBJECTS:
        for feeling, sensation in FEELINGS:
            for when, quand in MOMENTS:
                for negative in (False, True):
                    english = _said(_is(who, negative), feeling, when, ".")
                    yield Pair(english, _said(clause(who, AVOIR[who.person], negative), sensation, quand, "."))


def _deeds() -> Iterator[Pair]:
    for who in SUBJECTS:
        for verb in VERBS:
            for noun in THINGS[verb.objects]:
                for negative in (False, True):
                    english = _does(who, verb.english, verb.english_third, negative)
                    french = clause(who, verb.french[who.person], negative)
                    yield Pair(_said(english, "the", noun.english, "."), _said(french, the(noun), "."))


def _whereabouts() -> Iterator[Pair]:
    for who in SUBJECTS:
        for place, endroit in PLACES:
            for when, quand in MOMENTS:
                for negative in (False, True):
                    english = _said(_is(who, negative), place, when, ".")
                    yield Pair(english, _said(clause(who, ETRE[who.person], negative), endroit, quand, "."))


def _outings() -> Iterator[Pair]:
    for who in SUBJECTS:
        for goal, but in (("to school", "à l'école"), ("to the station", "à la gare"), ("to the market", "au marché")):
            for when, quand in MOMENTS:
                for negative in (False, True):
                    english = _said(_is(who, negative), "going", goal, when, ".")
                    yield Pair(english, _said(clause(who, ALLER[who.person], negative), but, quand, "."))


def _orders() -> Iterator[Pair]:
    for order in ORDERS:
        for form, word in enumerate(order.french):
            for when, quand in MOMENTS:
                yes, no = ("let us", "let us not") if form == 1 else ("", "do not")
                yield Pair(_said(yes, order.english, when, "!"), _said(word, quand, "!"))
                yield Pair(_said(no, order.english, when, "!"), _said(elide("ne", word), "pas", quand, "!"))


KINDS: tuple[Callable[[], Iterator[Pair]], ...] = (
    _states,
    _states_at_a_moment,
    _questions,
    _trades,
    _belongings,
    _feelings,
    _deeds,
    _whereabouts,
    _outings,
    _orders,
)
