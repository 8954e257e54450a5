"""The charter of a group: its members, limits, plan and policy, which never change."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, model_validator

from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact, GoalReference, Labels, RepetitionRule
from ioa.protocol.ids import AgentIdField, CommIdField, TaskIdField
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time
from ioa.protocol.policy import Casting, Policy
from ioa.protocol.policy_parts import MAX_ROLES

MAX_MEMBERS = 64
"""Maximum members per group, and maximum length of each list of members in an entry: readers look up each of them."""
MAX_BRIEF_CHARS = 20_000

Timeout = Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=365))]


class Limits(Model):
    """The limits of a group. Turns, tokens and cost are for the group and all groups nested in it together.

    Attributes:
        max_turns: Maximum messages of the discussion, without the announcement and the conclusion.
        max_tokens: Maximum tokens of language models; None without a limit.
        max_cost_micros: Maximum cost, in millionths of the currency; None without a limit.
        max_depth: Maximum depth of nested groups; the root group has depth 0.
        deadline: Time at which the group ends in any phase.
        floor_timeout: Maximum silence of a member with the floor.
        task_lease: Maximum time of an open task without progress.
        pause_timeout: Maximum length of a pause.
        conclusion_timeout: Maximum silence of the concluding speaker.
        repetition: Whether a member may repeat its words without any event in between.
        model_patience: Maximum time in which the models of all members are unavailable.
    """

    max_turns: Annotated[int, Field(ge=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_cost_micros: Annotated[int, Field(ge=1)] | None = None
    max_depth: Annotated[int, Field(ge=0)] = 3
    deadline: Time
    floor_timeout: Timeout = timedelta(seconds=60)
    task_lease: Timeout = timedelta(seconds=30)
    pause_timeout: Timeout = timedelta(minutes=10)
    conclusion_timeout: Timeout = timedelta(seconds=60)
    repetition: RepetitionRule = RepetitionRule.VERBATIM
    model_patience: Timeout = timedelta(minutes=5)


class ParentTask(Model):
    """The task of another group that this group serves."""

    comm_id: CommIdField
    task_id: TaskIdField


class PlannedTask(Model):
    """A task that its planner intends to assign after the tasks in `uses`. It is a hint in the record, and is not enforced.

    `others` are further assignees in case of a failure, the best first.
    """

    task_id: TaskIdField
    assignee: AgentIdField
    task_desc: str
    uses: Annotated[tuple[TaskIdField, ...], Field(max_length=MAX_MEMBERS)] = ()
    others: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()


class Charter(GoalReference):
    """The setup of a group, which never changes (paper, figure 7: goal, team_members, team_up_depth, max_turns).

    `brief` describes the goal to a nested group; its `inputs` are the files of the goal and of the results that its task uses.
    `user` is the owner of the goal. `policy` leads the group, with `cast` for its roles; a group without one is free. `labels`
    are the goal's.
    """

    comm_id: CommIdField
    goal: str
    owner: AgentIdField
    team_members: Annotated[tuple[AgentCard, ...], Field(min_length=1, max_length=MAX_MEMBERS)]
    team_up_depth: Annotated[int, Field(ge=0)]
    limits: Limits
    inputs: tuple[Artifact, ...] = ()
    parent: ParentTask | None = None
    plan: tuple[PlannedTask, ...] = ()
    traceparent: str = ""
    brief: Annotated[str, Field(max_length=MAX_BRIEF_CHARS)] = ""
    policy: Annotated[Policy | None, OMITTED_IF_EMPTY] = None
    cast: Annotated[tuple[Casting, ...], Field(max_length=MAX_ROLES), OMITTED_IF_EMPTY] = ()
    labels: Labels = Field(default_factory=dict)

    @model_validator(mode="after")
    def _members_differ_and_roles_are_cast(self) -> Charter:
        roles = () if self.policy is None else [role.name for role in self.policy.roles]
        if [casting.role for casting in self.cast] != [*roles]:
            raise ValueError("the cast names each role of the policy once, in their order")
        members = {card.agent_id for card in self.team_members}
        if strangers := {agent for casting in self.cast for agent in casting.members} - members:
            raise ValueError(f"the cast names {', '.join(sorted(strangers))}, which are not in the team")
        if len(members) < len(self.team_members):
            raise ValueError("the team names one member twice")
        return self
