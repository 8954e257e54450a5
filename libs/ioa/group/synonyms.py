"""Words that say nearly the same, in groups between ends of lines or bars; a word in several groups counts for the first.

The tables are general English of people who plan, work and report together. Opposites never share a line: who says `raise` for
`lower` says something else. Inflections are cut before a word is looked up, so that only irregular ones are listed.
"""

from __future__ import annotations

GENERAL = """
able capable capability | accept accepted acceptance approve approval endorse consent agree agreed agreement
achieve accomplish attain
add append include insert incorporate attach supplement extend extra additional another further contain comprise
allow permit permission enable authorize permissible | alone sole solely single
amazing excellent great fantastic superb | announce declare | answer respond response reply
appear emerge arise arose arisen occur happen surface pop | argument argue claim assert contend
arrange organise organize schedule coordinate plan | arrive arrival come came reach get got
ask request inquire query wonder
assess evaluate evaluation assessment gauge judge judgement rate rating score grade
assume presume suppose suspect guess believe belief | attempt try tried test tested testing trial
avoid prevent avert | aware conscious | bad poor terrible awful worse worst | base ground
begin began begun start kickoff commence initiate kick launch onset beginning outset
big bigger biggest enormous massive giant immense large largest larger huge sizable considerable substantial greatest greater vast
block obstruct hinder impede | book reserve reservation | borrow lend lent loan
bring brought carry carried convey haul | broken break broke crash collapse fail failed failure defect
buy bought purchase acquire procure obtain | calculate compute computation recalculate calculation determine derive
call phone ring telephone | cancel revoke | capture record log | careful cautious
cause trigger provoke induce lead led
change modify modification rework alter adjust adjustment adapt adaptation amend edit revise revision
check confirm confirmation verify verification validate validation doublecheck ensure review proofread inspect inspection
choose chose chosen select pick selection decide decision opt settle | clean cleanse tidy wash
closed closing shut closure | clear clearly obvious evident plain apparent
collect gather compile assemble collate retrieve fetch collection
combine merge consolidate bundle integrate unify join | compare comparison contrast
complete finish finished completed completion conclude conclusion finalise finalize end over ended done wrap
complex complicated | concern affect influence impact effect | connect link couple | consider contemplate
construct build built create implement implementation develop produce generate make made form prepare preparation craft put
contact approach | continue proceed resume go goes goon carryon follow | convert transform turn
convince convincing persuade persuasive compelling strong stronger strengthen robust reinforce
copy duplicate replicate repeat | correspond match fit fits suit | cover covered coverage span | cut trim crop
damage harm hurt destroy ruin spoil | deal handle manage treat address tackle | delay postpone defer reschedule
deliver submit provide supply send sent pass forward mail post hand give gave given grant present
demand insist | deploy deployment release publish rollout shipped shipping
describe elaborate explain describing explanation description outline describes | differ different other distinct
difficult hard tough tricky demanding | direct directly | disappear vanish gone
discover discovery find found identify identification detect locate spot notice observe
discuss talk discussion conversation debate speak spoke spoken speech
distribute divide split dispatch share partition allocate | draw drew drawn sketch
drop erase purge wipe prune dispose discard remove delete eliminate exclude omit strike struck skip
duty mandatory obligatory compulsory required require requirement need necessary necessitate necessity must
early earlier sooner | easy easier simple simpler straightforward effortless | emphasis focus concentrate
empty blank vacant | enough suffice sufficient adequate | enter input
essential crucial significant vital critical important key indispensable main primary principal chief major central
establish founded
estimate approximate approximation expect expectation anticipate reckon forecast predict prediction
examine examination investigate analyst probe investigation study analyse analyze analysis analytics explore research
exceed surpass | exist existence | expire lapse elapse run | express voice
fall fell fallen decline decrease sink sank shrink reduce lower lessen diminish minimise minimize reduction less fewer
fast faster fastest quick quicker quickest rapid speedy swift prompt soon
fear afraid worry worried anxious scared | fill populate | fix repair solve solution patch hotfix resolve remedy mend rectify cure
forget forgot forgotten | free gratis complimentary | fresh new newer newest novel recent latest
full whole entire total overall | gain win won
good fine suitable appropriate proper decent nice better best improve improvement enhance enhancement optimise optimize
grow grew grown expand increase raise rise rose risen climb boost more
guarantee assure promise pledge commit | halt stop cease quit | have own possess hold held
help assist support aid assistance | hide hid hidden conceal mask | high higher highest tall top
hire recruit employ | hope wish | immediate instant urgent | inform notify tell told alert | install mount
invite invitation | keep kept retain preserve maintain store save stored | know knew known
lack miss missing absent shortage | last final ultimate | late later delayed overdue | lay laid place position
lean tend | learn learnt learned taught teach instruct training | leave left depart departure
limit restrict restriction cap bound constrain constraint | list enumerate itemise itemize | live reside dwell
long lengthy | look view glance watch see saw seen | lose lost loss | mark flag label tag highlight
maximum most max | signify means meant imply | meet met | mention state note | minimum least min
mix blend mixture | move moving moved transfer migrate migration relocate shift | narrow slim
near nearby neighbouring neighboring adjacent next close | odd strange weird unusual | offer propose proposal
old older oldest former | open opened opening unlocked | pay paid payment
perform execute execution conduct operate work works function | possible feasible viable doable potential
prefer preference favour favor rather like | previous prior past | prioritise prioritize priority
probable probably presumably likely | protect protection guard shield secure safe
prove proof proven evidence | push press | quiet silent silence calm | rare seldom | ready prepared set
real true genuine actual | reason rationale | receive
recommend advise advice advisable suggest recommendation | refer relate regard | refuse reject deny denied
regular usual typical normal common ordinary standard | remain stay rest remaining | remember recall
remind reminder | replace substitute exchange switch | represent depict | rewrite rephrase reword
rough coarse | search seek sought | sell sold | separate apart individual | serious severe grave
short shorter shortest shorten brief concise abbreviate
show shown display present demonstrate illustrate reveal indicate | sign signed signature | similar alike comparable
slow slower sluggish | small smaller smallest little tiny minor | special particular specific | spend spent
spread scatter | strict stringent rigorous | succeed success successful | summarise summarize recap
surprise surprised unexpected | take took taken | think thought | throw threw thrown
track monitor trace oversee | translate translation | travel journey trip tour
understand understood understands grasp comprehend | update refresh
use used utilise utilize apply leverage using usage application | useful helpful valuable beneficial
various several multiple many numerous diverse few | wait await | warn warning caution
weak weaker weakest feeble fragile | wear wore worn | write written wrote draft compose
cheap cheaper cheapest inexpensive affordable | expensive costly pricey dearer
exact precise accurate accuracy | always constantly continually permanently | outcome result finding
worth worthwhile | option choice possibility alternative | automatic automatically itself
afterwards subsequently | rent rental lease | apology apologise apologize sorry | happy glad pleased
forbid forbidden ban banned prohibit prohibited | afford | shape | read | risky | scan | surround | tight
visit | visible | ought | serve | return | enjoy | far | advance ahead beforehand
attend participate participation partake | chance opportunity | complain complaint grumble
contradict conflict clash collide inconsistent | criticise criticize critique | doubtful unsure uncertain
eat ate eaten consume | exhaust exhausted deplete | fair reasonable sensible | feedback comment remark
frequent often frequently | heavy weight weigh | ignore overlook neglect disregard
realise realize recognise recognize | redundant superfluous unnecessary needless
reliable dependable trustworthy | relevant pertinent | rely depend hinge | restart reboot
skilled experienced expert | sort type category | specify define definition | stable steady constant
unstable shaky | sudden abrupt | unclear ambiguous vague confusing confused | upset angry annoyed | wide broad
balanced even | pause | encounter face | legal lawful | sponsor finance | freeze froze frozen | popular | earn
equal identical | boring dull | crowded busy | deep depth | die died dead | guide | justify | trust | withdraw
wake woke | drain emptied | surely definitely | original initial | opposite contrary | partly partially
alternate | abandon give-up
approach method strategy technique procedure | assignment job task chore
component part section portion segment piece module | goal aim intend intent objective target purpose intention
information data detail | issue problem trouble difficulty challenge | number count amount quantity sum
notion concept | people person | phase stage step | place location site venue | subject topic theme
word term expression
accelerate hasten expedite | access entry | adhere comply conform obey | adopt embrace | align alignment harmonise harmonize
arbitrary random | archive archived | assign delegate entrust appoint nominate designate | advantage benefit upside merit
drawback downside disadvantage shortcoming | annotate annotated | behave behaviour behavior | bias skew distort distortion
cite quote quotation citation | classify categorise categorize classification | coherent consistent consistency
collaborate cooperate collaboration cooperation | compatible compatibility interoperable
concurrent parallel simultaneous simultaneously | configure configuration config setting setup | activate enabled
deactivate disable | debug troubleshoot diagnose diagnosis | default fallback
deprecate deprecated obsolete outdated legacy stale | detach disconnect unplug | deteriorate worsen degrade degradation
deviate deviation diverge divergence discrepancy mismatch | disagree dispute quarrel disagreement
disturb disrupt interrupt interruption disruption bother | efficient efficiency effective | embed nest nested
encourage motivate motivation | enforce impose | engage involve involvement | thorough comprehensive detailed
excess surplus excessive | example instance | extract extraction parse parsing | filter sift | flexible adaptable versatile
fluctuate vary variation volatile | upcoming forthcoming | ratio proportion fraction | generic universal | idle inactive dormant
incident outage downtime | incomplete unfinished partial | incorrect inaccurate false invalid erroneous faulty
insufficient inadequate | initialise initialize bootstrap | introduce introduction intro preface | isolate isolated quarantine
iterate iteration round | lag latency | simulate simulation emulate mock stub | modern contemporary
negotiate bargain negotiation | noise noisy loud | normalise normalize standardise standardize | optional voluntary
overload overburden overwhelm | polish refine refinement | plausible credible | practical pragmatic
preliminary provisional tentative interim temporary | progress headway | qualify qualified eligible | react reaction
revert undo rollback restore recover recovery | restructure refactor reorganise reorganize rearrange
refund reimburse reimbursement repay | register registration enroll enrol signup | relax loosen | renew renewal
responsible accountable responsibility | retry reattempt | reuse recycle | reverse invert | satisfy fulfil fulfill
situation circumstance | skill competence expertise | snippet excerpt passage fragment | spike surge jump soar | stuck jammed
sync synchronise synchronize synchronization | terminate kill abort | threshold cutoff | compromise tradeoff
tune calibrate calibration finetune | unchanged untouched unaffected intact undamaged | vote ballot | format layout template
compress compression
"""
"""Verbs, adjectives and abstract words: who rephrases exchanges these first, so they say little about what a text is about."""

TOPICAL = """
chart graph plot diagram figure visualisation visualization | article paper publication | average mean
bicycle bike cycle cyclist | bill invoice | bug fault flaw | business company firm enterprise corporation
car vehicle automobile | kid child children youngster | client customer buyer consumer purchaser
colleague coworker teammate | cost price expense fee charge | money cash fund budget | country nation
danger risk hazard threat | deadline due | doctor physician | documentation report writeup
employee staff worker personnel workforce | error mistake | evening night tonight | file document
flat apartment | flight plane aircraft | food meal dish dinner | fridge refrigerator
garbage trash rubbish waste bin | gift | guideline rule policy regulation | headline title heading
holiday vacation | hotel accommodation lodging | illness disease sickness | image picture photo photograph
income revenue earnings turnover | lawyer attorney counsel solicitor | lorry truck | manual handbook
market promote advertise marketing | measurement measure metric | medicine drug medication | mobile smartphone
overview summary | parcel package packet | profit margin | pupil student learner | quality | query question
road street | salary wage compensation | seller vendor supplier | shop retailer | sofa couch | source reference origin
speed pace velocity | table spreadsheet sheet | teacher instructor | train railway | trend pattern tendency
website webpage page | west western | east eastern | north northern | south southern | half halve halved semi
cellar basement | garden yard | autumn | film movie | conference congress | crew team group
manager boss head | sentence phrase | screen | sea ocean | ship boat vessel | storm gale | speaker loudspeaker
warranty | wedding marriage | guest visitor attendee | house home building | hike trek | forest wood
frequency | percentage percent | schedule timetable | password credential | server host | folder directory
repository repo | feature functionality | login signin | colour color hue | contract | remainder | user
generator | cellphone | elevator lift | owe debt | mail email | audience public spectator listener
author writer | cab taxi | mum mother | dad father | petrol gasoline fuel | luggage baggage suitcase
coast shore coastal | injury wound | soil earth | tv television | subway metro underground
university college | internet web | exam exams | carpet rug | sweets candy | jumper sweater pullover
bathroom toilet restroom | coach trainer | hobby pastime | shade shadow | statistics stats | dataset
diary journal | appendix annex | footnote annotation | heading caption | keyword | laptop notebook computer
bug glitch
km kilometre kilometer | metre meter m | cm centimetre centimeter | mm millimetre millimeter | mile mi | hour hr hrs h
minute mins | seconds sec secs | ms millisecond | kg kilogram kilogramme kilo | litre liter | kb kilobyte | mb megabyte
gb gigabyte | tb terabyte | euro eur | dollar usd | pound gbp | kw kilowatt | year annual yearly annually | month monthly
day daily | week weekly | database db datastore | column field attribute | row tuple | endpoint api | frontend ui gui
cpu processor | memory ram | disk ssd | throughput bandwidth | parameter param | array vector | exception traceback stacktrace
library framework lib | code codebase | container docker pod | vulnerability weakness | attack breach intrusion
authentication auth | milestone checkpoint | backlog todo | department division | headquarters hq | board committee council panel
director executive ceo | intern trainee apprentice | applicant candidate | contractor freelancer | competitor rival
receipt voucher | discount rebate | credit mortgage | stock inventory | warehouse depot storehouse | shipment consignment
ad advert advertisement commercial | newsletter bulletin | bibliography references | font typeface | slide presentation deck
video clip footage | outlier anomaly | correlation association | survey questionnaire poll | route path trail
device gadget appliance equipment instrument tool | cable wire cord | sensor detector | law statute legislation | clause provision
licence license | district neighbourhood neighborhood | town city municipality | region area zone territory province
prerequisite precondition | artefact artifact output | batch chunk | pipeline workflow | chatbot bot assistant | backup snapshot
edge border boundary | bottleneck chokepoint | scale magnitude | january jan | february feb | august aug | september sept
october oct | november nov | december dec | monday mon | tuesday tue tues | wednesday wed | thursday thu thurs | friday fri
"""
"""Things: a text that names other things is about something else."""

OPPOSITES = """
add drop | allow forbid | allow refuse | accept refuse | begin complete | begin halt | big small | bad good | broken succeed
buy sell | cheap expensive | complex easy | difficult easy | early late | empty full | fall grow | fast slow | fresh old
gain lose | have lack | high low | keep change | keep drop | hide show | long short | maximum minimum | open closed | rare regular
strong weak | convince weak | forget remember | previous near | import export | internal external | left right | north south
west east | last first | day night | morning evening | remote local | public private | increase reduce | win lose | arrive leave
pass broken | push pull | rough exact | deploy cancel | send receive | inside outside | upper lower | senior junior
winter summer | activate deactivate | advantage drawback | connect detach | upload download | encode decode | encrypt decrypt
duty optional | frontend backend | temporary permanent | lock unlock | incorrect correct | load unload | client server
"""
"""Pairs of which the one is never said for the other, in whatever words."""
