"""The shapes of the model's answers: classes that never change, so that a provider keeps what it has read of a request.

They say what can be said at all. What is legal in a situation is judged after the answer (`ioa.agent.model.legality`), by sentences
that a model can act on. Ids are plain text here: a list of those that exist would make another schema of each situation. Only what
a policy asks somebody to choose from is a closed list: it is the same each time that its node asks.

A further kind of message is one more class in `Decision`, with a line in `legality`, in `payloads` and in the prompts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Union

from pydantic import BaseModel, BeforeValidator, Field, create_model

MAX_PLANNED_ROLES, MAX_PLANNED_NODES = 8, 12
"""How large a team may be that a model plans."""


def _mended(value: object) -> object:
    """Replace what no text may hold although JSON can spell it: half a surrogate pair, the character zero."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_mended)]


class Typed(Protocol):
    """A decision, which names its kind."""

    @property
    def type(self) -> str:
        """The word for what is decided."""


class ShapedAnswer(BaseModel):
    """What each answer begins with, and the decision that it takes."""

    thought: Text = ""

    if TYPE_CHECKING:
        decision: Typed  # a field of each kind of answer, behind what it says before it decides


class SearchClient(BaseModel):
    """Ask discovery who fits."""

    type: Literal["search_client"]
    needs: list[Text]


class LaunchGroupChat(BaseModel):
    """Launch the group with these agents."""

    type: Literal["launch_group_chat"]
    members: list[Text]


class ReportNobodyFits(BaseModel):
    """Give the goal up, since nobody who was found can serve what it needs."""

    type: Literal["report_nobody_fits"]
    needs: list[Text]
    why: Text


class Formation(ShapedAnswer):
    """A step of team formation."""

    decision: Annotated[SearchClient | LaunchGroupChat | ReportNobodyFits, Field(discriminator="type")]


class AskedField(BaseModel):
    """What each of several members is to fill in; `answer` is the shorthand of a team file, such as `yes/no` or `this|that`."""

    name: Text
    answer: Text


class PlannedRole(BaseModel):
    """A part that agents play, who are found by what they are needed for."""

    name: Text
    need: Text
    prompt: Text = ""
    count: int = 1


class PlannedExit(BaseModel):
    """A way out of a node: when its turns are over, or as a field was filled in, or as `by` chooses, a role or the `speaker`."""

    to: Text
    field: Text = ""
    equals: Text = ""
    by: Text = ""


class PlannedNode(BaseModel):
    """A stretch of the discussion."""

    name: Text
    roles: list[Text]
    prompt: Text = ""
    turns: Literal["order", "nominate", "together"] = "order"
    max: int | None = None
    visits: int | None = None
    tasks: bool = False
    form: list[AskedField] = []
    exits: list[PlannedExit] = []


class PlannedTeam(BaseModel):
    """A team with a policy."""

    type: Literal["team"]
    name: Text
    leader: Text
    roles: Annotated[list[PlannedRole], Field(min_length=1, max_length=MAX_PLANNED_ROLES)]
    nodes: Annotated[list[PlannedNode], Field(min_length=1, max_length=MAX_PLANNED_NODES)]


class NoPolicy(BaseModel):
    """The goal needs no order that could be told in advance."""

    type: Literal["free"]
    why: Text = ""


class Planning(ShapedAnswer):
    """How a team is to go about a goal."""

    decision: Annotated[PlannedTeam | NoPolicy, Field(discriminator="type")]


class DoAlone(BaseModel):
    """Do the task without a team."""

    type: Literal["alone"]


class TeamUp(BaseModel):
    """Serve the task with a nested team."""

    type: Literal["team"]


class Approach(ShapedAnswer):
    """How an assignee does its task."""

    decision: Annotated[DoAlone | TeamUp, Field(discriminator="type")]


class FilledField(BaseModel):
    """A field that the speaker fills in, as a text."""

    name: Text
    value: Text


class Discuss(BaseModel):
    """Say something and give the floor to one other member, or to several, who answer side by side; then it comes back."""

    type: Literal["DISCUSSION"]
    content: Text
    next_speaker: Text = ""
    next_speakers: list[Text] = []
    question: list[AskedField] = []
    fields: list[FilledField] = []


class WrittenThing(BaseModel):
    """What the speaker writes on the board; an empty `text` stands for all of `content`."""

    name: Text
    text: Text = ""


class DiscussInPart(Discuss):
    """Say something under a policy, which chooses the next speaker unless one is named, and leads on unless `go` names a way."""

    go: Text = ""
    writes: list[WrittenThing] = []


class AssignedTask(BaseModel):
    """One task for one member; `uses` are ids, or names of this same message, of tasks whose results it needs.

    `team` is the name of the stored team that serves it, if one is to.
    """

    name: Text = ""
    assignee: Text
    task_desc: Text
    uses: list[Text] = []
    team: Text = ""


class Assign(BaseModel):
    """Give out tasks, and wait for all of them or go on."""

    type: Literal["ASSIGN"]
    mode: Literal["wait", "go_on"]
    content: Text = ""
    tasks: list[AssignedTask]


class PauseOn(BaseModel):
    """Wait for open tasks."""

    type: Literal["PAUSE"]
    content: Text = ""
    triggers: list[Text]


class Read(BaseModel):
    """See more of a text, from one character to another; `end` 0 is as far as one read goes."""

    type: Literal["READ"]
    what: Text
    start: int = 0
    end: int = 0


class Conclude(BaseModel):
    """End the group with its answer.

    Attributes:
        answer_from: Results whose texts follow `content`, word for word.
        files: What goes with the answer; None: what `files_of_answer` says.
    """

    type: Literal["CONCLUDE"]
    goal_reached: bool
    content: Text
    answer_from: list[Text] = []
    files: list[Text] | None = None


class Reject(BaseModel):
    """A result that is not what was wanted."""

    task: Text
    why: Text


class PassOn(BaseModel):
    """Say nothing and let the next member speak."""

    type: Literal["PASS"]
    content: Text = ""


class InviteIn(BaseModel):
    """Have discovery find one more member for a need, and speak when it has joined."""

    type: Literal["INVITE"]
    need: Text


class InviteInPart(InviteIn):
    """The same under a policy; the newcomer plays a role."""

    role: Text


class AskOut(BaseModel):
    """Ask the user of the goal, and have the floor again with the answer; `default` stands if nobody answers within the minutes."""

    type: Literal["ASK"]
    content: Text
    options: list[Text] = []
    default: Text
    minutes: Annotated[int, Field(ge=1, le=10_000)] = 60


class Speech(ShapedAnswer):
    """What a floor holder says, or wants to read first, and which results it rejects."""

    rejects: list[Reject] = []
    decision: Annotated[Discuss | Assign | InviteIn | PauseOn | Read | Conclude | PassOn, Field(discriminator="type")]


class PartSpeech(Speech):
    """The same in a group that a policy leads."""

    decision: Annotated[DiscussInPart | Read | Conclude | PassOn, Field(discriminator="type")]


class Decide(BaseModel):
    """Choose one of the options that a policy asks the speaker to choose from."""

    type: Literal["DECIDE"]
    choice: Text
    content: Text = ""


class Ruling(ShapedAnswer):
    """What somebody decides who is asked to, or wants to read first."""

    decision: Annotated[Decide | Read, Field(discriminator="type")]


class Step(Decide):
    """Choose whether to step in, and whom it is about."""

    members: list[Text] = []


class StepOrAdd(Step):
    """The same, where somebody may be added: whom discovery finds for a need, to play a role."""

    need: Text = ""
    role: Text = ""


@lru_cache
def speech_in_part(*, asks: bool, invites: bool, tasks: bool) -> type[PartSpeech]:
    """Return the shape of what is said under a policy, where a node may let its speaker do more than talk."""
    more = (*((Assign, PauseOn) if tasks else ()), *((AskOut,) if asks else ()), *((InviteInPart,) if invites else ()))
    if not more:
        return PartSpeech
    either: Any = Annotated[Union[DiscussInPart, *more, Read, Conclude, PassOn], Field(discriminator="type")]
    return create_model("PartSpeech", __base__=PartSpeech, decision=(either, ...))


@lru_cache(maxsize=64)
def ruling_on(options: tuple[str, ...], base: type[Decide] = Decide) -> type[Ruling]:
    """Return the shape of a decision among these options, so that a provider writes no other one."""
    among: Any = Literal[options]
    decide = create_model("Decide", __base__=base, choice=(among, ...))
    either: Any = Annotated[Union[decide, Read], Field(discriminator="type")]  # noqa: UP007 - of classes that are made here
    return create_model("Ruling", __base__=Ruling, decision=(either, ...))
