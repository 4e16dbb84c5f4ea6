"""Stop words of queries, in the languages of a query: words that say nothing about what is wanted."""

from collections.abc import Collection, Mapping

from backsight.core.documents.spelling import without_umlauts
from backsight.core.text.stems import STOPS

_GERMAN = """
    aber alle als also am an auch auf aus bei bin bis da damit dann das dass dein dem den der des dessen die dies diese
    diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es etwas fur gab gibt haben hat
    hatte hatten ich ihr ihre im in ist ja jede jeder jetzt kann kein keine konnen man mein mit muss nach nicht noch nun
    nur ob oder ohne sehr sein seine seit sich sie sind so soll uber um und uns unser unter viel viele vielen vom von
    vor wann war waren warum was weil welche welcher welches wem wen wenn wer werden wie wieder wieviel will wir wird wo
    wurde wurden zu zum zur
"""
_FRENCH = """
    a ai as au aux avec avait avons c ce ces cet cette combien comment d dans de des dont du elle elles en est et ete
    etre etait eu il ils j je l la le les leur leurs lors lui m ma mais me mes mon n ne nos notre nous on ont ou par pas
    pendant plus pour pourquoi qu quand que quel quelle quelles quels qui s sa sans se ses si son sont sur t ta te tes
    toi ton tout tous tres tu un une vos votre vous y
"""
_SPANISH = """
    a al antes como con cual cuales cuando cuanta cuanto cuantos de del desde donde dos e el ella ellos en entre era es
    esa ese eso esta estan estar este esto estos fue fueron ha hay la las le les lo los mas me mi muy nada ni nos o os
    para pero por porque que quien quienes se ser si sin sobre son su sus tambien te tiene tu un una uno unos y ya yo
"""
_ITALIAN = """
    ai al alla alle anche che chi ci come con cosa cui da dal dalla degli dei del della delle di dove e ed era gli ha
    hanno ho i il in io la le lo ma mi nei nel nella no noi non o per perche piu qual quale quando quanto questa questo
    se si sono su sul tra un una uno
"""
_PORTUGUESE = """
    ao aos as com como da das de do dos e ela ele em entre era essa esse esta este eu foi ha isso ja mais mas me na nas
    nao no nos o os ou para pela pelo por qual quando que quem se sem ser seu sua tem um uma
"""
_DUTCH = """
    aan al als bij dan dat de deze die dit door een en er geen had hebben heeft het hij hoe ik in is je kan maar met
    naar niet nog nu of om ook op over te tot uit van veel voor waar waarom wanneer was wat we welke wie wij
    wordt zijn zo
"""
LANGUAGES: Mapping[str, frozenset[str]] = {
    "en": STOPS,
    "de": frozenset(_GERMAN.split()),
    "fr": frozenset(_FRENCH.split()),
    "es": frozenset(_SPANISH.split()),
    "it": frozenset(_ITALIAN.split()),
    "pt": frozenset(_PORTUGUESE.split()),
    "nl": frozenset(_DUTCH.split()),
}
_AMBIGUOUS = "also den die door dos hat man mas mi nos over par pas per plus pour sans sin so son sur war"
ENGLISH_TOO = frozenset(_AMBIGUOUS.split())
"""Stop words of other languages that mean something in English: alone they do not show the language of a query."""
CHINESE = frozenset("的是了吗呢么什谁哪")
"""Characters that make a pair a stop word."""
CHINESE_WORDS = frozenset({"多少", "怎样", "如何", "几个"})


def language_of(words: Collection[str]) -> str | None:
    """The language that has most of the words as stop words; None if no language has any, or it is not sure.

    >>> [language_of(query.split()) for query in ("wie hoch sind sie", "die another day", "margin call", "where is it")]
    ['de', None, None, 'en']
    """
    distinct = set(words)
    counts = {language: len(distinct & stops) for language, stops in LANGUAGES.items()}
    language = max(counts, key=lambda each: counts[each])  # the first of equals: English
    is_sure = counts[language] > 1 or (not counts["en"] and ENGLISH_TOO.isdisjoint(distinct))
    return language if counts[language] and (language == "en" or is_sure) else None


def stop_words(words: Collection[str]) -> frozenset[str]:
    """The stop words among the words of a query: the English ones, and those of the language that has most of them.

    >>> sorted(stop_words(["wie", "hoch", "ueber", "die", "gebuhren"])), sorted(stop_words(["die", "another", "day"]))
    (['die', 'ueber', 'wie'], [])
    """
    distinct = set(words)
    language = language_of(distinct)
    chosen = STOPS if language is None else STOPS | LANGUAGES[language]
    pairs = {word for word in distinct if word in CHINESE_WORDS or not CHINESE.isdisjoint(word)}
    spelled_out = {word for word in distinct if language == "de" and without_umlauts(word) in chosen}
    return frozenset(distinct & chosen | pairs | spelled_out)
