"""The words that our English–French sentences are made of, each with what agreement needs to know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective said of people: masculine singular, and the feminine where a rule can't make it."""

    english: str
    french: str
    feminine: str | None = None


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun with its gender ("m" or "f"), and plurals where a rule can't make them."""

    english: str
    french: str
    gender: str
    english_plural: str | None = None
    french_plural: str | None = None


@dataclass(frozen=True, slots=True)
class Trade:
    """What somebody does for a living; the feminine is given where it differs."""

    english: str
    masculine: str
    feminine: str
    english_plural: str | None = None


@dataclass(frozen=True, slots=True)
class Verb:
    """A transitive verb: its French present (je, tu, il, nous, vous, ils) and what it is done to."""

    english: str
    english_third: str
    french: tuple[str, str, str, str, str, str]
    objects: str  # key of THINGS


@dataclass(frozen=True, slots=True)
class Order:
    """Something to tell somebody to do: the forms for tu, nous and vous."""

    english: str
    french: tuple[str, str, str]


ADJECTIVES = (
    Adjective("tired", "fatigué"),
    Adjective("happy", "heureux", "heureuse"),
    Adjective("sad", "triste"),
    Adjective("ready", "prêt"),
    Adjective("ill", "malade"),
    Adjective("busy", "occupé"),
    Adjective("rich", "riche"),
    Adjective("poor", "pauvre"),
    Adjective("strong", "fort"),
    Adjective("weak", "faible"),
    Adjective("kind", "gentil", "gentille"),
    Adjective("wicked", "méchant"),
    Adjective("proud", "fier", "fière"),
    Adjective("jealous", "jaloux", "jalouse"),
    Adjective("serious", "sérieux", "sérieuse"),
    Adjective("curious", "curieux", "curieuse"),
    Adjective("careful", "prudent"),
    Adjective("patient", "patient"),
    Adjective("calm", "calme"),
    Adjective("angry", "fâché"),
    Adjective("worried", "inquiet", "inquiète"),
    Adjective("nervous", "nerveux", "nerveuse"),
    Adjective("surprised", "surpris"),
    Adjective("disappointed", "déçu"),
    Adjective("lost", "perdu"),
    Adjective("alone", "seul"),
    Adjective("free", "libre"),
    Adjective("young", "jeune"),
    Adjective("big", "grand"),
    Adjective("small", "petit"),
    Adjective("funny", "drôle"),
    Adjective("shy", "timide"),
    Adjective("lazy", "paresseux", "paresseuse"),
    Adjective("honest", "honnête"),
    Adjective("clever", "intelligent"),
    Adjective("famous", "célèbre"),
    Adjective("active", "actif", "active"),
    Adjective("quick", "rapide"),
    Adjective("slow", "lent"),
    Adjective("dangerous", "dangereux", "dangereuse"),
)

BEINGS = (
    Noun("cat", "chat", "m"),
    Noun("dog", "chien", "m"),
    Noun("horse", "cheval", "m", french_plural="chevaux"),
    Noun("bird", "oiseau", "m", french_plural="oiseaux"),
    Noun("cow", "vache", "f"),
    Noun("mouse", "souris", "f", english_plural="mice"),
    Noun("boy", "garçon", "m"),
    Noun("girl", "fille", "f"),
    Noun("man", "homme", "m", english_plural="men"),
    Noun("woman", "femme", "f", english_plural="women"),
    Noun("child", "enfant", "m", english_plural="children"),
    Noun("friend", "ami", "m"),
    Noun("neighbour", "voisin", "m"),
    Noun("sister", "sœur", "f"),
    Noun("brother", "frère", "m"),
    Noun("queen", "reine", "f"),
    Noun("king", "roi", "m"),
    Noun("pupil", "élève", "m"),
)

THINGS = {
    "food": (
        Noun("apple", "pomme", "f"),
        Noun("bread", "pain", "m"),
        Noun("cheese", "fromage", "m"),
        Noun("orange", "orange", "f"),
        Noun("cake", "gâteau", "m", french_plural="gâteaux"),
        Noun("soup", "soupe", "f"),
        Noun("egg", "œuf", "m"),
    ),
    "drink": (
        Noun("water", "eau", "f", french_plural="eaux"),
        Noun("milk", "lait", "m"),
        Noun("tea", "thé", "m"),
        Noun("coffee", "café", "m"),
        Noun("wine", "vin", "m"),
    ),
    "text": (
        Noun("book", "livre", "m"),
        Noun("letter", "lettre", "f"),
        Noun("newspaper", "journal", "m", french_plural="journaux"),
        Noun("story", "histoire", "f", english_plural="stories"),
        Noun("poem", "poème", "m"),
    ),
    "thing": (
        Noun("house", "maison", "f"),
        Noun("car", "voiture", "f"),
        Noun("tree", "arbre", "m"),
        Noun("key", "clé", "f"),
        Noun("hat", "chapeau", "m", french_plural="chapeaux"),
        Noun("umbrella", "parapluie", "m"),
        Noun("garden", "jardin", "m"),
        Noun("school", "école", "f"),
        Noun("hotel", "hôtel", "m"),
        Noun("bicycle", "vélo", "m"),
        Noun("clock", "horloge", "f"),
        Noun("knife", "couteau", "m", english_plural="knives", french_plural="couteaux"),
    ),
}
# What one has or has not, so only what can be counted.
OWNED = (
    *(n for n in BEINGS if n.english in {"cat", "dog", "horse", "bird", "sister", "brother", "friend", "child"}),
    *(n for n in THINGS["thing"] if n.english != "school"),
    *(n for n in THINGS["text"] if n.english != "story"),
    *(n for n in THINGS["food"] if n.english in {"apple", "orange", "cake", "egg"}),
)

TRADES = (
    Trade("teacher", "professeur", "professeure"),
    Trade("doctor", "médecin", "médecin"),
    Trade("student", "étudiant", "étudiante"),
    Trade("baker", "boulanger", "boulangère"),
    Trade("singer", "chanteur", "chanteuse"),
    Trade("actor", "acteur", "actrice"),
    Trade("farmer", "agriculteur", "agricultrice"),
    Trade("lawyer", "avocat", "avocate"),
    Trade("nurse", "infirmier", "infirmière"),
    Trade("artist", "artiste", "artiste"),
    Trade("engineer", "ingénieur", "ingénieure"),
    Trade("cook", "cuisinier", "cuisinière"),
)

VERBS = (
    Verb("eat", "eats", ("mange", "manges", "mange", "mangeons", "mangez", "mangent"), "food"),
    Verb("want", "wants", ("veux", "veux", "veut", "voulons", "voulez", "veulent"), "food"),
    Verb("drink", "drinks", ("bois", "bois", "boit", "buvons", "buvez", "boivent"), "drink"),
    Verb("order", "orders", ("commande", "commandes", "commande", "commandons", "commandez", "commandent"), "drink"),
    Verb("read", "reads", ("lis", "lis", "lit", "lisons", "lisez", "lisent"), "text"),
    Verb("write", "writes", ("écris", "écris", "écrit", "écrivons", "écrivez", "écrivent"), "text"),
    Verb("see", "sees", ("vois", "vois", "voit", "voyons", "voyez", "voient"), "thing"),
    Verb("look for", "looks for", ("cherche", "cherches", "cherche", "cherchons", "cherchez", "cherchent"), "thing"),
    Verb("like", "likes", ("aime", "aimes", "aime", "aimons", "aimez", "aiment"), "thing"),
    Verb("sell", "sells", ("vends", "vends", "vend", "vendons", "vendez", "vendent"), "thing"),
    Verb("draw", "draws", ("dessine", "dessines", "dessine", "dessinons", "dessinez", "dessinent"), "thing"),
)

# What French has and English is.
FEELINGS = (
    ("hungry", "faim"),
    ("thirsty", "soif"),
    ("cold", "froid"),
    ("hot", "chaud"),
    ("afraid", "peur"),
    ("right", "raison"),
    ("wrong", "tort"),
    ("sleepy", "sommeil"),
    ("ashamed", "honte"),
)

PLACES = (
    ("at home", "à la maison"),
    ("at school", "à l'école"),
    ("at the hotel", "à l'hôtel"),
    ("at the station", "à la gare"),
    ("at the market", "au marché"),
    ("at the cinema", "au cinéma"),
    ("in the garden", "dans le jardin"),
    ("in the street", "dans la rue"),
    ("in the kitchen", "dans la cuisine"),
    ("in the car", "dans la voiture"),
    ("in paris", "à paris"),
    ("on the beach", "sur la plage"),
)

ORDERS = (
    Order("run", ("cours", "courons", "courez")),
    Order("sing", ("chante", "chantons", "chantez")),
    Order("dance", ("danse", "dansons", "dansez")),
    Order("wait", ("attends", "attendons", "attendez")),
    Order("listen", ("écoute", "écoutons", "écoutez")),
    Order("speak", ("parle", "parlons", "parlez")),
    Order("go out", ("sors", "sortons", "sortez")),
    Order("start", ("commence", "commençons", "commencez")),
    Order("stay", ("reste", "restons", "restez")),
    Order("walk", ("marche", "marchons", "marchez")),
    Order("swim", ("nage", "nageons", "nagez")),
    Order("smile", ("souris", "sourions", "souriez")),
)

# (English, French, may follow "ne … pas")
DEGREES = (
    ("", "", True),
    ("very", "très", True),
    ("too", "trop", True),
    ("really", "vraiment", True),
    ("so", "si", True),
    ("often", "souvent", True),
    ("always", "toujours", False),
    ("still", "encore", False),
)

MOMENTS = (("", ""), ("today", "aujourd'hui"), ("now", "maintenant"), ("this evening", "ce soir"))
