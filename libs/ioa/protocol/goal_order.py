"""What users publish on `ioa.v1.goal.<user>`: plain text, or a JSON object with `goal` and options.

Users type this by hand, so a field that is not known is an error, unlike in messages between the parts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from ioa.errors import InvalidInputError
from ioa.json_text import parse_json
from ioa.protocol.codec import check_size
from ioa.protocol.goals import (
    GOAL_TURNS,
    MAX_INPUTS,
    Artifact,
    FileName,
    Goal,
    GoalOptions,
)
from ioa.protocol.ids import GoalId, GoalIdField, GoalName, check_token, parse_agent_id
from ioa.protocol.model import OMITTED_IF_EMPTY, FailFast
from ioa.protocol.operation.trace import trace_of_goal
from ioa.protocol.teams.stored_teams import TeamReference
from ioa.protocol.teams.team_file import TeamSpec, document_of, team_of
from ioa.protocol.texts import check_texts, in_words
from ioa.protocol.usage import MAX_COUNT, MICROS

MAX_GOAL_BYTES = 256_000


def _read_team(given: object) -> object:
    match given:
        case TeamSpec():
            return given
        case str():
            return str(TeamReference.parse(given))
        case _:
            return team_of(given)


def _write_team(team: TeamSpec | str) -> object:
    return team if isinstance(team, str) else document_of(team)


TeamOrName = Annotated[
    TeamSpec | str, BeforeValidator(_read_team, json_schema_input_type=dict[str, Any] | str), PlainSerializer(_write_team)
]
"""A team in the form of a team file, or the name of a stored team."""


class InlineInput(FailFast):
    """A small text file that comes with the goal itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: FileName
    text: str


class GoalOrder(GoalOptions):
    """A goal as a user writes it. `timeout` is in seconds, `max_cost` in the currency of the agents.

    An input is a small text given inline, or a reference to an uploaded file. A team is written as in a team file, or is the name
    of a stored team. Without `max_turns` the team decides, or the default is 40.

    Raises:
        InvalidInputError: A value is invalid; the message names it.
    """

    model_config = ConfigDict(extra="forbid")

    goal_id: GoalIdField | None = None
    max_turns: Annotated[int, Field(ge=1, le=10_000)] | None = None
    max_cost: Annotated[float, Field(ge=1 / MICROS, le=MAX_COUNT / MICROS)] | None = None
    timeout: Annotated[float, Field(ge=0.001, le=30 * 86_400)] = 3_600
    inputs: Annotated[tuple[Artifact | InlineInput, ...], Field(max_length=MAX_INPUTS)] = ()
    team: Annotated[TeamOrName | None, OMITTED_IF_EMPTY] = None

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_in_words(cls, fields: object, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Reject invalid values with an error of this system."""
        try:
            check_texts(fields, "goal")
            return validate(fields)
        except ValidationError as error:
            raise InvalidInputError(f"The goal cannot be read: {in_words(error, 'goal')}.") from error

    def names(self, team: TeamReference) -> bool:
        """Whether the order names this version of a team."""
        return isinstance(self.team, str) and TeamReference.parse(self.team).means(team)

    def accepted(self, name: GoalName, inputs: tuple[Artifact, ...]) -> Goal:
        """Return the goal as the system stores it: every input is a stored file, and a named team was replaced by the team.

        A goal with a team goes to the leader of the team, unless the order addresses another agent.
        """
        team = self.team
        assert not isinstance(team, str), "a named team was looked up before"
        leader = team.leader.agents[:1] if team is not None else ()
        options: dict[str, Any] = {option: getattr(self, option) for option in GoalOptions.model_fields}
        options |= {"agent": self.agent or next(iter(leader), None), "traceparent": trace_of_goal(name, self.traceparent)}
        return Goal(
            **options,
            goal_id=name.goal_id,
            user=name.user,
            team=team,
            inputs=inputs,
            max_turns=self.max_turns or (GOAL_TURNS if team is None else team.max_turns),
            max_cost_micros=None if self.max_cost is None else round(self.max_cost * MICROS),
            timeout=timedelta(seconds=self.timeout),
        )


def order_of(goal: str, **options: TeamSpec | dict[str, str] | str | float | None) -> GoalOrder:
    """Build an order; an option that is None keeps its default.

    Raises:
        InvalidInputError: A value is invalid; the message names it.
    """
    return GoalOrder.model_validate({"goal": goal, **{name: value for name, value in options.items() if value is not None}})


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
    order = GoalOrder.model_validate(_fields(text))
    if addressee and order.agent and addressee != order.agent:
        raise InvalidInputError(f"The subject addresses {addressee!r} but the payload addresses {order.agent!r}.")
    agent = order.agent or (parse_agent_id(addressee) if addressee else None)
    return order.model_copy(update={"agent": agent})


def find_goal_id(data: bytes) -> GoalId | None:
    """Return the id of a goal that is invalid otherwise, for the result; None if there is none."""
    try:
        return GoalId(check_token(parse_json(data)["goal_id"]))
    except (ValueError, TypeError, KeyError):
        return None


def _fields(text: str) -> object:
    try:
        return parse_json(text) if text.startswith("{") else {"goal": text}
    except ValueError as error:
        raise InvalidInputError(f"The goal looks like JSON but is not: {error}.") from None
