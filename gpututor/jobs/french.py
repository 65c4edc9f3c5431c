"""French agreement: gender, number, elision and negation, as far as our sentences need them."""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.jobs.words import Adjective, Noun, Trade

# A word that begins with one of these elides what stands before it; every h of ours that can stand there is mute.
ELIDING = "aeiouyhâàéèêëîïôûùœ"


@dataclass(frozen=True, slots=True)
class Subject:
    """Who a sentence is about. `person` 0..5 is je, tu, il, nous, vous, ils; `gender` is "m" or "f"."""

    english: str
    french: str
    person: int
    gender: str
    english_person: int  # 0..2 for i, you, he; 3 for any plural

    @property
    def many(self) -> bool:
        """Whether what is said of the subject stands in the plural."""
        return self.person >= 3


def elide(short: str, word: str) -> str:
    """The two words together, with the first one's vowel dropped where French drops it.

    >>> elide("le", "chat"), elide("la", "eau"), elide("ne", "ai"), elide("de", "homme")
    ('le chat', "l'eau", "n'ai", "d'homme")
    """
    return f"{short[:-1]}'{word}" if word[0] in ELIDING else f"{short} {word}"


def plural(word: str) -> str:
    """The regular French plural.

    >>> plural("chat"), plural("souris"), plural("heureux")
    ('chats', 'souris', 'heureux')
    """
    return word if word[-1] in "sx" else word + "s"


def agree(adjective: Adjective, gender: str, many: bool) -> str:
    """The adjective in the form that goes with a noun of this gender and number.

    >>> tired = Adjective("tired", "fatigué")
    >>> [agree(tired, g, many) for many in (False, True) for g in "mf"]
    ['fatigué', 'fatiguée', 'fatigués', 'fatiguées']
    """
    word = adjective.french
    if gender == "f":
        word = adjective.feminine or (word if word.endswith("e") else word + "e")
    return plural(word) if many else word


def trade_name(trade: Trade, gender: str, many: bool) -> str:
    """What one calls somebody of that trade."""
    word = trade.feminine if gender == "f" else trade.masculine
    return plural(word) if many else word


def the(noun: Noun, many: bool = False) -> str:
    """The noun with its definite article.

    >>> the(Noun("water", "eau", "f")), the(Noun("cat", "chat", "m"), many=True)
    ("l'eau", 'les chats')
    """
    if many:
        return f"les {noun.french_plural or plural(noun.french)}"
    return elide("la" if noun.gender == "f" else "le", noun.french)


def one(noun: Noun) -> str:
    """The noun with its indefinite article.

    >>> one(Noun("key", "clé", "f")), one(Noun("tree", "arbre", "m"))
    ('une clé', 'un arbre')
    """
    return f"{'une' if noun.gender == 'f' else 'un'} {noun.french}"


def clause(subject: Subject, verb: str, negative: bool) -> str:
    """Subject and verb, the verb denied between "ne" and "pas" where asked for.

    >>> i = Subject("i", "je", 0, "m", 0)
    >>> clause(i, "ai", False), clause(i, "ai", True), clause(i, "suis", True)
    ("j'ai", "je n'ai pas", 'je ne suis pas')
    """
    if negative:
        return f"{subject.french} {elide('ne', verb)} pas"
    return elide("je", verb) if subject.french == "je" else f"{subject.french} {verb}"


ETRE = ("suis", "es", "est", "sommes", "êtes", "sont")
AVOIR = ("ai", "as", "a", "avons", "avez", "ont")
ALLER = ("vais", "vas", "va", "allons", "allez", "vont")
