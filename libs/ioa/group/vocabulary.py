"""The words that tell what a text says from how it says it: words that say nothing, and words that take back, plan, ask or remind.

The lists are general English of people who work together, with the commonest function words of German, French and Spanish. They
decide what the routers refuse, so a change here changes which messages are legal; a log stays what it is. Words that say the same
are in `ioa.group.synonyms`.
"""

from __future__ import annotations

import re

FUNCTION_WORDS = frozenset(
    """
    a able about above accordingly actually additionally after afterward afterwards ah all almost alone along alongside already
    also although am amid among amongst an and another any anybody anyhow anyone anything anyway apparently approximately are
    around as aside at away back based basis be became because become becomes been before behind being below beside besides
    beyond bit both bulk but by can case cases certainly come concerning consequently could currently depending despite did
    directly do does doing down during each either else elsewhere enough especially essentially even eventually ever every
    everybody everyone everything everywhere exactly fact finally firstly followed following for from further furthermore
    generally get gets getting give given go goes going got had has have having he hence her here hereby hers herself highly him
    himself his hopefully how however i if immediately in including indeed inside instantly into is it its itself just kind
    kindly largely lastly less let lets like likely likewise lot lots made mainly majority make makes making manner many matter
    matters may maybe me meanwhile merely might mine moment more moreover most mostly much must my myself namely nearly
    necessarily need needs nonetheless normally now nowadays nowhere obviously of off oh on once one ones only onto or
    originally other others otherwise ought our ours out outside over overall own particular particularly per percent percentage
    perhaps personally perspective plus possibly presently presumably previously primarily probably properly provided purely put
    quite rather really recently regard regarding relatively require required requires respect respectively roughly same seem
    seemed seems sense separately shall she should side similarly simply since single slightly so some somebody someone
    something somewhere soon sort specifically still stuff such suddenly supposed supposedly sure surely take taken takes taking
    than that the their theirs them themselves then there thereafter thereby therefore these they thing things this those though
    through throughout thus till time times to together too toward towards truly turns typically ultimately under unfortunately
    unless until up upon us usually versus very via want wants was way ways we well were what whatever whatsoever when whenever
    where whereas whereby wherever whether which whichever while who whoever whole whom whose why will with within would yet you
    your yours yourself

    al als au auch auf aus aux avec bei bien bitte brauchen braucht ce cette como con danke dann dans das dass de del dem den
    der des die du ein eine einem einen einer el elle en er es est et favor für gracias ha haben han hat ich ihr il ils im ist
    je la las le les lo los merci mit noch nochmal nochmals nous o oder ont ou par para por pour que qui schon se sie sind soll
    sollen sollte sont su sur tu un una und une unos unter von vous werden wie wir wird y yo zu zum zur über
    """.split()
)
COURTESY = frozenset(
    """
    absolutely acknowledge acknowledged again agree agreed agreement agrees alright amazing appreciate appreciated aware awesome
    basically believe brilliant certainly cheers clarify clear clearly cool course definitely earlier emphasize essentially
    everybody everyone exactly excellent fantastic feel fine folks forget friendly glad good gotcha great greetings guys happy
    hello hey hi hope idea ideas important know lgtm like looking love mention mentioned mentions mind nice noted obviously ok
    okay once opinion outlined perfect perfectly please pleased pleasure point points previously proposal propose proposed quick
    quickly recap recommend reiterate remember remind reminder repeat repeating reply restate right said say saying says see
    simply sorry sounds splendid stated stress suggest suggested suggesting suggestion super teamwork thank thanks think thought
    thoughts time told totally view welcome wonderful worries yeah yep yes
    """.split()
)
"""Greeting, agreeing, thanking and announcing: a text of nothing else is an acknowledgement."""

NEGATIONS = frozenset(
    "cannot jamais kein keine keinen neither never nicht nie no nobody none nor not nothing nunca pas unable without".split()
)

CORRECTING = frozenset(
    "correct corrected correction erratum mistake mistaken misread misspoke retract swap swapped typo wrong wrongly".split()
)
"""Whoever says one of these takes something back or puts it right; the words around it are bound to be the same."""

PERHAPS_CORRECTING = frozenset("actually instead longer nevertheless rather".split())
"""These announce something other than before, or are mere ornament."""

AUXILIARIES = frozenset("must ought shall should will would".split())
POSSIBLE = frozenset("able can could may might".split())
IMPOSSIBLE = frozenset("cannot unable".split())
OBLIGING = frozenset("must necessary need needed needs ought required should".split())
PLANNING = frozenset("going let necessary need needed plan planned propose proposal required suggest suggestion want wants".split())
"""With the auxiliaries: who says one of these speaks of what is to come."""

COMMITTING = frozenset("i will".split())
PLEADING = frozenset("bitte kindly please wonder wondering".split())
QUESTION_WORDS = frozenset("how what when where which who whom whose why".split())
ADDRESSING = frozenset("anybody anyone somebody someone you".split())
SETTLED = frozenset("complete done finished here live online out ready set".split())
"""What is one of these is no longer to come."""

CONDITIONAL = frozenset("after if once until when whenever".split())
"""What has been done then is to be done yet."""

REMINDING = frozenset(
    """
    aligned asked clarify clarity completeness confirm described discussed doubt emphasise emphasize essence explained forget
    helps hesitate highlight mentioned message messages mind noted noting nutshell objection objections outlined pointed problem
    proposed recap reiterate rephrase restate said stated suggested summarise summarize summary turn understand understanding
    understood words worries worry wrote
    """.split()
)
"""A text with one of these may hold a phrase that only refers to what was said."""

POLES = (
    ("before", "after afterwards"),
    ("above exceed exceeding exceeds higher longer more over", "below fewer fewest less lower shorter under"),
    ("all always each every everybody everyone everything", "any few nobody none some somebody someone sometimes"),
    ("on", "off"),
    ("up", "down"),
    ("next tomorrow", "last previous yesterday"),
    ("included includes including", "except excluding"),
)
"""A text that says a word of the one kind means something else than a text with a word of the other."""

_WHOM = r"(?:(?-i:[A-Z])\w+|\w+-\w+|all|both|everyone|everybody|team)"
_GOOD = "(?:good|great|nice|excellent|amazing|fantastic|outstanding|fine|lovely|solid|wonderful)"
_END = r"(?= *(?:[.!,;]|$))"
_ACKNOWLEDGEMENTS = (
    (
        rf"(?:thanks|thank you)(?: (?:a lot|so much|very much|again|{_WHOM}))*(?:, {_WHOM})?(?=,? for\b| *(?:[.!,;]|$))"
        rf"(?:,? for [^.!?,;]+)?(?:, {_WHOM}(?= *(?:[.!]|$)))?"
    ),
    rf"{_GOOD} (?:catch|call|point|work|job|news|teamwork|effort|progress|to (?:know|hear)(?: that)?)(?:,? {_WHOM})?{_END}",
    (
        r"i (?:(?:fully|totally|completely|also) )?(?:agree|support|appreciate|like)(?: with)?"
        rf" (?:you|it|that|this|both|(?:the|this|that|your) (?:plan|proposal|idea|approach|help|update)|{_WHOM}){_END}"
    ),
    r"(?:fully|totally|completely) agree|sounds? like a (?:good |great )?(?:plan|idea|deal)",
    r"(?:works|sounds? \w+|is fine|suits)(?: for| to| by| with)? me|looks (?:good|great|fine|perfect)(?: to me)?",
    r"that (?:works|helps)(?: a lot| me)?|well (?:done|said|put)|love (?:it|that|this)|will do|i see|understood|makes sense",
    r"fair (?:enough|point)|on board|all for it|count me in|same here|let['’]?s (?:do it|go|proceed)|couldn['’]t agree more",
    r"go ahead|looking forward to it|(?:copy|roger) that|(?:working )?on it|ready when you are|standing by|exactly what i needed",
    (
        r"(?:no (?:(?:further|more|other) )?(?:questions?|comments?|remarks?|objections?)"
        rf"|nothing (?:(?:further|more|else|to add) ?)+)(?: from (?:me|my side))?{_END}"
    ),
    rf"(?:pleasure|nice|good|great) (?:to (?:be )?work(?:ing)?|working) with (?:you(?: all| both)?|{_WHOM})",
    r"keep (?:it up|up the \w+ work)|(?:happy|glad) to (?:help|assist|hear (?:it|that))",
    rf"i(?:['’]ll| will) wait(?: for (?:it|that|you|(?:the|your) \w+))?{_END}",
)
ACKNOWLEDGING = re.compile(rf"\b(?:{'|'.join(_ACKNOWLEDGEMENTS)})\b", re.IGNORECASE)
"""Phrases that acknowledge; looked for in short texts only."""
