"""The words that tell what a text says from how it says it: words that say nothing, words that say the same, words that take back.

The lists are general English of people who work together, with the commonest function words of German, French and Spanish. They
decide what the routers refuse, so a change here changes which messages are legal; a log stays what it is.
"""

from __future__ import annotations

FUNCTION_WORDS = frozenset(
    """
    a about above actually after afterward afterwards ah all alone already also although am an and another any anybody anyhow
    anyone anything anyway are around as at away back be because been before behind being below besides bit both but by can
    certainly come could did do does doing down during each either else enough even ever every everybody everyone everything for
    from further get gets getting give given go goes going got had has have having he hence her here hers herself him himself
    his how however i if in indeed inside into is it its itself just keep kind kindly less let lets like likewise lot lots made
    make makes making many may maybe me meanwhile might mine more moreover most much must my myself need needs now of off oh on
    once one ones only onto or other others ought our ours out outside over own per plus put quite rather really regarding
    require required requires same shall she should simply since single so some somebody someone something soon sort still such
    sure surely take taken takes taking than that the their theirs them themselves then there therefore these they thing things
    this those though through thus till time times to together too toward towards truly under until up upon us very via want
    wants was way we well were what whatever when where whether which while who whom whose why will with within would yet you
    your yours yourself

    al als au auch auf aus aux avec bei bien bitte brauchen braucht ce cette como con danke dann dans das dass de del dem den
    der des die du ein eine einem einen einer el elle en er es est et favor für gracias ha haben han hat ich ihr il ils im ist
    je la las le les lo los merci mit noch nous o oder ont ou par para por pour que qui schon se sie sind soll sollen sollte
    sont su sur tu un una und une unos unter von vous werden wie wir wird y yo zu zum zur über
    """.split()
)
COURTESY = frozenset(
    """
    absolutely acknowledge acknowledged again agree agreed agreement agrees alright amazing appreciate appreciated aware awesome
    basically believe certainly cheers clarify clear clearly cool course definitely earlier emphasize essentially everybody
    everyone exactly excellent fantastic feel fine folks forget friendly glad good gotcha great greetings guys happy hello hey
    hi hope idea ideas important input know like looking love mention mentioned mentions mind nice noted obviously ok okay once
    opinion outlined perfect perfectly please pleased pleasure point points previously proposal propose proposed quick quickly
    recap recommend reiterate remember remind reminder repeat repeating reply restate right said say saying says see simply
    sorry sounds splendid stated stress suggest suggested suggesting suggestion summarise summarize summary super team teamwork
    thank thanks think thought thoughts time told totally understand understood view welcome wonderful worries yeah yep yes
    """.split()
)
"""Greeting, agreeing, thanking and announcing: a text of nothing else is an acknowledgement."""

NEGATIONS = frozenset(
    "cannot jamais kein keine keinen neither never nicht nie no nobody none nor not nothing nunca pas without".split()
)

CORRECTING = frozenset(
    "correct corrected correction erratum instead mistake mistaken misread misspoke retract swap swapped typo wrong wrongly".split()
)
"""Whoever says one of these takes something back or puts it right; the words around it are bound to be the same."""

PERHAPS_CORRECTING = frozenset("actually longer nevertheless rather".split())
"""These announce something other than before, or are mere ornament."""

NUMBERS = {
    **{word: str(2 + at) for at, word in enumerate("two three four five six seven eight nine ten eleven twelve".split())},
    "zero": "0",
    "twice": "2",
}

SYNONYMS = """
chart graph plot diagram figure draw drawing
add append include insert incorporate
allocate assign delegate distribute divide split share partition
allow enable permit
alternative option choice possibility
analyse analyze analysis analyst analytics examine examination inspect inspection investigate investigation study
approach method strategy technique
approve approval accept confirm confirmation endorse
answer respond response reply
ask request inquire query
article paper publication
assess evaluate evaluation assessment gauge judge
assume presume suppose
average mean
begin start commence initiate kick launch
big large huge sizable
build built construct create develop produce generate
bug defect fault flaw
buy bought purchase acquire
calculate compute computation calculation determine
change modify modification alter adjust adjustment adapt edit revise revision
check verify verification validate validation doublecheck ensure
choose chose chosen select pick selection decide decision opt settle
clean cleanse tidy
client customer
collect gather compile assemble collate retrieve fetch obtain collection
compare comparison contrast
complete finish done completed conclude ready finalise finalize final
cost price expense
deliver give hand submit provide supply send sent pass forward
describe explain describing explanation description
discuss talk discussion conversation
discover find found identify detect locate spot
draft write written wrote compose author writing
effect impact influence
emphasis focus concentrate
error failure fail failed
essential crucial vital critical necessary key
estimate approximate approximation guess
fast quick rapid speedy swift
fix repair solve resolve remedy mend
goal aim objective target purpose
guideline rule policy
handle manage deal responsible responsibility charge
help assist support aid assistance
hire recruit employ
hotel accommodation lodging
concept notion
image picture photo
improve improvement enhance enhancement optimise optimize better
issue problem trouble difficulty
job task work assignment duty
kid child children
lack miss missing absent
last previous prior
list enumerate itemise itemize
look view
main primary principal chief major central
maintain preserve retain
market promote advertise
measure measurement metric
meet meeting
merge combine consolidate integrate unify join
move transfer migrate migration relocate shift
number count amount quantity total sum
order sequence
organise organize arrange schedule plan
overview outline
part section portion segment component
people person
phase stage step
prepare preparation ready
present show shown display presentation
proceed continue move progress ahead
quality standard
read scan
reason cause rationale
receive get
arrive come came
recommend advise
reduce decrease lower cut shrink
release publish deploy ship rollout
remove delete drop discard eliminate exclude
report document writeup documentation
represent depict
result outcome finding output
review proofread
risk danger hazard
run execute perform carry conduct
save store persist
search research
separate distinct
shop store
small little tiny
source reference
suitable appropriate proper
table spreadsheet sheet
test testing trial
translate translation
trip journey travel
leave depart left departure
bring brought
trend pattern tendency
update refresh
use utilise utilize employ apply leverage using
user customer
wait await
website site webpage
whole entire complete full
"""
"""A line for each group of words that say nearly the same; a word in several groups counts for the first."""
