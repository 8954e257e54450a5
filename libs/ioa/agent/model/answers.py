"""The schemas of a model's answers. Docstrings and descriptions are part of the schema, so the model reads them.

The schema of a kind of question is constant, so that providers can cache it: ids are plain text, and the machine rejects unknown
ones. Only the options of a policy's decision are a closed list.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, create_model

from ioa.errors import InvalidInputError
from ioa.group.events import MAX_WHY_CHARS
from ioa.json_text import find_object
from ioa.protocol.agents.search import MAX_NEED_CHARS, MAX_NEEDS
from ioa.protocol.texts import in_words, shortened

MAX_NOTE_BYTES = 300
"""Maximum bytes of each private note that an agent keeps of a turn."""
_MAX_ERRORS = 3


def _repaired(value: object) -> object:
    """Replace characters that JSON can contain and a text cannot: half a surrogate pair, and zero."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _note(value: object) -> object:
    return shortened(value.strip(), MAX_NOTE_BYTES) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_repaired)]
Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), BeforeValidator(_repaired)]
Note = Annotated[str, BeforeValidator(_note)]
S = TypeVar("S", bound=BaseModel)


class ShapedAnswer(BaseModel):
    """Private notes, then a decision."""

    known: Note = Field("", description="Private: facts that are established, briefly.")
    missing: Note = Field("", description="Private: what is unknown or not done yet.")
    next: Note = Field("", description="Private: the next steps.")

    if TYPE_CHECKING:
        decision: Any  # a field of each subclass, after the notes


def parse_answer(text: str, shape: type[S]) -> S:
    """Parse the answer in a text of a model.

    Raises:
        InvalidInputError: The text contains no valid answer.
    """
    if (found := find_object(text)) is None:
        raise InvalidInputError("it holds no whole JSON object.")
    try:
        return shape.model_validate(found)
    except ValidationError as error:
        raise InvalidInputError(in_words(error, "the object", most=_MAX_ERRORS)) from None


class SearchClient(BaseModel):
    """Ask discovery for agents."""

    type: Literal["search_client"]
    needs: list[Annotated[Filled, Field(max_length=MAX_NEED_CHARS)]] = Field(
        min_length=1,
        max_length=MAX_NEEDS,
        description="One short sentence for each distinct skill, as a client would ask for it, "
        "in the language of the descriptions.",
    )


class LaunchGroupChat(BaseModel):
    """Start the group."""

    type: Literal["launch_group_chat"]
    members: list[Text] = Field(description="Ids of agents that were found, without yours. Empty: you do it alone.")


class ReportNobodyFits(BaseModel):
    """Report that no agent can do an essential part of the goal."""

    type: Literal["report_nobody_fits"]
    needs: list[Text] = Field(description="The parts that no agent can do.")
    why: Text = Field(description="Why the nearest agents do not fit: one sentence in the language of the goal.")


class Formation(ShapedAnswer):
    """A step of team formation."""

    decision: Annotated[SearchClient | LaunchGroupChat | ReportNobodyFits, Field(discriminator="type")]


class AskedField(BaseModel):
    """A field that each answer fills in."""

    name: Text = Field(description="1 to 32 of a-z 0-9 _ -, starting with a letter.")
    answer: Text = Field(description="yes/no, number, 1..10, this|that, member or text; with ? at the end it is optional.")


class PlannedTeam(BaseModel):
    """A team with a policy."""

    type: Literal["team"]
    file: Text


class NoPolicy(BaseModel):
    """The goal needs no fixed order of speakers."""

    type: Literal["free"]
    why: Text = ""


class Planning(ShapedAnswer):
    """A plan of a team."""

    decision: Annotated[PlannedTeam | NoPolicy, Field(discriminator="type")]


class FilledField(BaseModel):
    """A value for a field that you are asked to fill in."""

    name: Text
    value: Text


class Discuss(BaseModel):
    """Say something. Use it for plans, questions, opinions, votes and objections; assign work as tasks."""

    type: Literal["DISCUSSION"]
    content: Filled
    next_speaker: Text = Field("", description="The member that speaks next.")
    next_speakers: list[Text] = Field([], description="Instead of one: members that answer in parallel; then you speak again.")
    question: list[AskedField] = Field([], description="Fields that each of `next_speakers` must fill in, such as a vote.")
    fields: list[FilledField] = Field([], description="The fields that you are asked to fill in.")


class WrittenThing(BaseModel):
    """An item to write on the board."""

    name: Text
    text: Text = Field("", description="Empty: all of `content`.")


class DiscussInPart(Discuss):
    """Contribute to the discussion: put all of it into `content`."""

    go: Text = Field("", description="The node to go to, if you may choose; empty: the policy leads.")
    writes: list[WrittenThing] = []


class AssignedTask(BaseModel):
    """A task for one member."""

    name: Text = Field("", description="A short name: letters, digits, hyphens.")
    assignee: Text = Field(description="A member's id; yours is possible.")
    task_desc: Filled = Field(
        description="Complete on its own, with exact values and units, and the name of each file of the goal that it needs."
    )
    uses: list[Text] = Field(
        [],
        description="Tasks whose results and files it needs: ids, or names in this message. It starts after them, and is cancelled "
        "if one fails.",
    )
    team: Text = Field("", description="A stored team that does it, only if the goal names one.")


class Assign(BaseModel):
    """Assign tasks."""

    type: Literal["ASSIGN"]
    mode: Literal["wait", "go_on"] = Field(description="wait: you decide again when all tasks have ended. go_on: at once.")
    content: Text = Field("", description="The reason, if members need it.")
    tasks: Annotated[list[AssignedTask], Field(min_length=1)]


class PauseOn(BaseModel):
    """Wait for open tasks."""

    type: Literal["PAUSE"]
    content: Text = ""
    triggers: Annotated[list[Text], Field(min_length=1, description="Ids of open tasks.")]


class Read(BaseModel):
    """Read a text in full, at no cost of turns. Only you see it, and only now: note in `known` what you need of it."""

    type: Literal["READ"]
    what: Text = Field(
        description="A result (t3-sum), message (m7), file of a task (t3-sum/out.csv) or of the goal (input/sales.csv), or goal."
    )
    start: int = Field(0, description="First character.")


class AnswerPart(BaseModel):
    """A result that is appended in full."""

    result: Text = Field(description="The id of the task.")
    heading: Text = Field("", description="The heading above it, in the language of the goal.")


class AnswerFile(BaseModel):
    """A file of the answer."""

    model_config = ConfigDict(populate_by_name=True)

    name: Text = Field(description="Its file name.")
    of: Text = Field(alias="from", description="The id of a task: its file of this name, or its text, saved under this name.")


class Conclude(BaseModel):
    """End the group with its answer. Take figures and names as reported, and state plainly what is missing or failed."""

    type: Literal["CONCLUDE"]
    goal_reached: bool = Field(description="False only if the goal as a whole was not reached.")
    content: Text = Field(description="The answer, written for the user, who reads nothing else.")
    answer_from: list[AnswerPart] = Field([], description="Long results that follow `content`, in place of copying them.")
    files: list[AnswerFile] | None = Field(None, description="Files of the answer; null: the files of all results.")

    @property
    def is_written(self) -> bool:
        """True if there is an answer, and not only the decision to end."""
        return bool(self.content.strip() or self.answer_from)


class Reject(BaseModel):
    """A result that must not be used."""

    task: Text = Field(description="The id of a finished task.")
    why: Filled


class PassOn(BaseModel):
    """Nothing to add; the next member speaks."""

    type: Literal["PASS"]
    content: Text = ""


class InviteIn(BaseModel):
    """Let discovery add a member for a need; then you decide again. It takes no turn and rejects nothing."""

    type: Literal["INVITE"]
    need: Filled = Field(description="One sentence.", max_length=MAX_WHY_CHARS)


class InviteInPart(InviteIn):
    """Let discovery add a member for a need, in a role; then you decide again."""

    role: Text


class AskOut(BaseModel):
    """Ask the user; you speak again with the answer."""

    type: Literal["ASK"]
    content: Text
    options: list[Text] = []
    default: Text = Field(description="The answer if none arrives within the minutes.")
    minutes: Annotated[int, Field(ge=1, le=10_000)] = 60


class Speech(ShapedAnswer):
    """What a member does in its turn."""

    rejects: list[Reject] = Field(
        [], description="Results that must not be used. Assign them again in the same message, with the rejected id in `uses`."
    )
    decision: Annotated[Discuss | Assign | InviteIn | PauseOn | Read | Conclude | PassOn, Field(discriminator="type")]


class Decide(BaseModel):
    """Choose one of the options that a policy offers."""

    type: Literal["DECIDE"]
    choice: Text
    content: Text = Field("", description="The reason, in one sentence.")


class Step(Decide):
    """Choose whether to intervene, and which members it concerns; or a new member for a need and a role."""

    members: list[Text] = []
    need: Text = ""
    role: Text = ""


@lru_cache(maxsize=64)
def speech_schema(*kinds: type[BaseModel]) -> type[Speech]:
    """Return the schema of a turn with these kinds of decision."""
    either: Any = Annotated[Union[kinds], Field(discriminator="type")]  # noqa: UP007 - of a tuple
    return create_model("Speech", __base__=Speech, decision=(either, ...))


@lru_cache(maxsize=64)
def ruling_on(options: tuple[str, ...], base: type[Decide] = Decide) -> type[ShapedAnswer]:
    """Return the schema of a decision among these options of a policy."""
    among: Any = Literal[options]
    decide = create_model("Decide", __base__=base, choice=(among, ...))
    either: Any = Annotated[Union[decide, Read], Field(discriminator="type")]  # noqa: UP007 - of classes that are made here
    return create_model("Ruling", __base__=ShapedAnswer, decision=(either, ...))


def decision_kinds(shape: type[ShapedAnswer]) -> frozenset[str]:
    """Return the kinds of decision of a schema."""
    kinds = get_args(shape.model_fields["decision"].annotation)
    return frozenset(get_args(kind.model_fields["type"].annotation)[0] for kind in kinds)
