"""What users publish on `ioa.v1.goal.<user>`: plain text, or a JSON object with `goal` and options.

Users type this by hand, so a field that is not known is an error, unlike in messages between the parts.
"""

from __future__ import annotations

import operator
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    model_serializer,
    model_validator,
)

from ioa.errors import InvalidInputError
from ioa.json_text import parse_json
from ioa.protocol.codec import check_size
from ioa.protocol.goals import MAX_GOAL_CHARS, MAX_INPUTS, Artifact, FileName, Goal, RepetitionRule, ResultFormat
from ioa.protocol.ids import AgentIdField, GoalId, GoalIdField, GoalName, check_token, parse_agent_id
from ioa.protocol.labels import Labels
from ioa.protocol.model import FailFast
from ioa.protocol.named_teams import TeamReference, check_reference
from ioa.protocol.team import MAX_TURNS, TeamSpec, document_of, team_of
from ioa.protocol.texts import check_texts
from ioa.protocol.trace import trace_of_goal
from ioa.protocol.usage import MAX_COUNT, MICROS
from ioa.protocol.validation_errors import in_words, problems_of

MAX_GOAL_BYTES = 256_000


def _read_team(given: object) -> object:
    match given:
        case TeamSpec():
            return given
        case str():
            return check_reference(given)
        case _:
            return team_of(given)


def _write_team(team: TeamSpec | str) -> object:
    return team if isinstance(team, str) else document_of(team)


TeamOrName = Annotated[
    TeamSpec | str, BeforeValidator(_read_team, json_schema_input_type=dict[str, Any] | str), PlainSerializer(_write_team)
]
"""A team in the form of a team file, or the name of one that was put."""


class InlineInput(FailFast):
    """A small text file that comes with the goal itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: FileName
    text: str


class GoalOrder(FailFast):
    """A goal as a user writes it. `timeout` is in seconds, `max_cost` in whatever currency the agents count in.

    An input is a small text given inline, or a reference to an uploaded file. A team is written as in
    a team file (`ioa.protocol.team`), or is the name of one that was put (`ioa.protocol.named_teams`).

    Raises:
        InvalidInputError: A value cannot be; the message names it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    goal: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_GOAL_CHARS)]
    goal_id: GoalIdField | None = None
    agent: AgentIdField | None = None
    as_task: Annotated[bool, Field(exclude_if=operator.not_)] = False
    max_turns: Annotated[int, Field(ge=1, le=10_000)] = 40
    max_tokens: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    max_cost: Annotated[float, Field(ge=1 / MICROS, le=MAX_COUNT / MICROS)] | None = None
    timeout: Annotated[float, Field(ge=0.001, le=30 * 86_400)] = 3_600
    inputs: Annotated[tuple[Artifact | InlineInput, ...], Field(max_length=MAX_INPUTS)] = ()
    traceparent: Annotated[str, Field(max_length=200)] = ""
    result_format: ResultFormat = ResultFormat.JSON
    repetition: RepetitionRule = RepetitionRule.VERBATIM
    team: Annotated[TeamOrName | None, Field(exclude_if=operator.not_)] = None
    labels: Labels = Field(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_in_words(cls, fields: object, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Refuse what cannot be by an error of this system, whoever builds the order."""
        try:
            return validate(fields)
        except ValidationError as error:
            raise InvalidInputError(f"The goal cannot be read: {in_words(error, 'goal')}.") from error

    @model_validator(mode="before")
    @classmethod
    def _turns_are_those_of_the_team(cls, data: object) -> object:
        """Take the turns of the team, unless the order says otherwise."""
        team = data.get("team") if isinstance(data, dict) else None
        turns = (
            team.max_turns if isinstance(team, TeamSpec) else team.get("max_turns", MAX_TURNS) if isinstance(team, dict) else None
        )
        return data if turns is None or not isinstance(data, dict) else {"max_turns": turns, **data}

    @model_serializer(mode="wrap")
    def _leave_turns_to_the_named_team(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write no number of turns that nobody has said, where it is that of a team which only its name tells."""
        written: dict[str, Any] = serialize(self)
        if isinstance(self.team, str) and "max_turns" not in self.model_fields_set:
            written.pop("max_turns", None)
        return written

    def names(self, team: TeamReference) -> bool:
        """Whether a version of a team is one that the order names."""
        return isinstance(self.team, str) and TeamReference.parse(self.team).means(team)

    def with_team(self, team: TeamSpec) -> GoalOrder:
        """Return the order with the team that it names, and its turns, unless the order says how many."""
        turns = self.max_turns if "max_turns" in self.model_fields_set else team.max_turns
        return self.model_copy(update={"team": team, "max_turns": turns})

    def accepted(self, name: GoalName, inputs: tuple[Artifact, ...]) -> Goal:
        """Return the goal as the system keeps it, with every input in the artifact store and its team whole.

        One with a team goes to who leads that, unless the order says otherwise.
        """
        team = self.team
        assert not isinstance(team, str), "what a name stands for is known by now"
        leader = team.leader.agents[:1] if team is not None else ()
        return Goal(
            goal_id=name.goal_id,
            user=name.user,
            goal=self.goal,
            agent=self.agent or next(iter(leader), None),
            as_task=self.as_task,
            team=team,
            inputs=inputs,
            max_turns=self.max_turns,
            max_tokens=self.max_tokens,
            max_cost_micros=None if self.max_cost is None else round(self.max_cost * MICROS),
            timeout=timedelta(seconds=self.timeout),
            traceparent=trace_of_goal(name, self.traceparent),
            result_format=self.result_format,
            repetition=self.repetition,
            labels=self.labels,
        )


def order_of(goal: str, **options: TeamSpec | dict[str, str] | str | float | None) -> GoalOrder:
    """Build the order from what was typed; an option that is None was not.

    Raises:
        InvalidInputError: A value cannot be; the message names it.
    """
    fields = {"goal": goal, **{name: value for name, value in options.items() if value is not None}}
    try:
        return GoalOrder.model_validate(fields)
    except InvalidInputError as error:
        assert isinstance(error.__cause__, ValidationError), "which is what an order is refused by"
        [(option, why), *_] = problems_of(error.__cause__)
        raise InvalidInputError(f"The {option.replace('_', ' ')} is not valid: {why}.") from None


def parse_goal(data: bytes, addressee: str | None = None) -> GoalOrder:
    """Read a goal off the payload of a message on `ioa.v1.goal.<user>` or `ioa.v1.goal.<user>.<agent or pool>`.

    Args:
        data: UTF-8 text. What begins with `{` is taken as JSON, anything else as the goal itself.
        addressee: The agent or pool in the subject, if any.

    Raises:
        PayloadTooLargeError: More than 256,000 bytes.
        InvalidInputError: Not UTF-8, empty, broken JSON, an unknown or malformed field, or two different addressees.
    """
    check_size(data, MAX_GOAL_BYTES, "The goal")
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"The goal is not UTF-8 text: byte {error.start} cannot be read.") from None
    if not text:
        raise InvalidInputError("The goal is empty.", hint='Publish a sentence, or JSON such as {"goal": "…"}.')
    order = _read_order(text)
    if addressee and order.agent and addressee != order.agent:
        raise InvalidInputError(f"The subject addresses {addressee!r} but the payload addresses {order.agent!r}.")
    agent = order.agent or (parse_agent_id(addressee) if addressee else None)
    return order.model_copy(update={"agent": agent})


def find_goal_id(data: bytes) -> GoalId | None:
    """Read the id off a goal that cannot be read otherwise, so that who waits for it can be told; None if there is none."""
    try:
        fields = parse_json(data)
        return GoalId(check_token(fields["goal_id"]))
    except (ValueError, TypeError, KeyError):
        return None


def _read_order(text: str) -> GoalOrder:
    fields: object = {"goal": text}
    try:
        if text.startswith("{"):
            fields = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"The goal looks like JSON but is not: {error}.") from None
    return parsed_order(fields)


def parsed_order(fields: object) -> GoalOrder:
    """Read a goal off JSON that was parsed.

    Raises:
        InvalidInputError: An unknown or malformed field, or a text that cannot be written.
    """
    try:
        check_texts(fields, "goal")
    except InvalidInputError as error:
        raise InvalidInputError(f"The goal cannot be read: {error.message}", hint=error.hint) from None
    return GoalOrder.model_validate(fields)
