"""Forms and questions: the fields of a message, their check, and the count of the answers of several members."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import FieldVotes, Gathering, GroupState, Member, Votes
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import FieldKind, FieldValue, Form, FormField

YES, NO = "yes", "no"
"""Names of the two values of a yes/no field in a count."""

_NUMBER = re.compile(r"[-+]?\d{1,15}")
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}


def form_of(state: GroupState, policy: Policy | None) -> Form:
    """Return the present form: the question of a member to those that speak in parallel, otherwise the form of the node."""
    if isinstance(state.stage, Gathering) and state.stage.form:
        return state.stage.form
    return () if policy is None or state.course is None else policy.nodes[state.course.node].form


def resolve_form(form: Iterable[FormField], members: Sequence[Member], policy: Policy | None = None) -> Form:
    """Return the fields of a form, with the members that can be named as options."""
    return tuple([_blank(field, members, policy) for field in form])


def check_fields(blanks: Form, given: Mapping[str, FieldValue]) -> None:
    """Reject unknown, missing and invalid fields.

    Raises:
        IllegalEventError: The error names the field and its values.
    """
    known = {blank.name: blank for blank in blanks}
    for name in given:
        if name not in known:
            asked = f"the fields are {', '.join(known)}" if known else "the form is empty"
            raise IllegalEventError(RejectionCode.BAD_FORM, f"There is no field {name} to fill in; {asked}.")
    for blank in blanks:
        value = given.get(blank.name)
        if value is None and not blank.required:
            continue
        if value is None or not blank.accepts(value):
            lead = "is missing" if value is None else "cannot be what you say"
            raise IllegalEventError(RejectionCode.BAD_FORM, f"The field {blank.name} {lead}: it is {blank.description}.")


def read_value(kind: FieldKind, written: str) -> FieldValue:
    """Read the value of a field from text; unreadable text is returned as it is, and `check_fields` rejects it."""
    if kind == "yes_no":
        return _YES_NO.get(written.lower(), written)
    return int(written) if kind == "number" and _NUMBER.fullmatch(written) else written


def no_votes(turn: int, by: str, form: Iterable[FormField]) -> Votes:
    """Return the empty count of the answers to a question."""
    options = [(field.name, (YES, NO) if field.kind == "yes_no" else field.options) for field in form]
    fields = [FieldVotes.of_valid(name=name, counts=tuple([(one, 0) for one in values])) for name, values in options]
    return Votes.of_valid(turn=turn, by=by, fields=tuple(fields))


def with_answer(votes: Votes, form: Iterable[FormField], given: Mapping[str, FieldValue]) -> Votes:
    """Count one answer."""
    kinds = {field.name: field.kind for field in form}
    fields = [_counted(one, kinds[one.name], given[one.name]) if one.name in given else one for one in votes.fields]
    return votes.model_copy(update={"fields": tuple(fields), "answered": votes.answered + 1})


def _blank(field: FormField, members: Sequence[Member], policy: Policy | None) -> FormField:
    if field.kind != "member":
        return field
    role = None if field.role is None or policy is None else policy.role_numbers[field.role]
    values = tuple([one.agent_id for one in members if not one.removed and (role is None or role in one.roles)])
    return field.model_copy(update={"options": values, "required": field.required and bool(values)})


def _counted(votes: FieldVotes, kind: FieldKind, value: FieldValue) -> FieldVotes:
    changed: dict[str, object] = {"count": votes.count + 1}
    if kind == "number":
        assert isinstance(value, int)
        changed["lowest"] = value if votes.lowest is None else min(votes.lowest, value)
        changed["highest"] = value if votes.highest is None else max(votes.highest, value)
        changed["total"] = value + (votes.total or 0)
    elif kind != "text":
        name = {True: YES, False: NO}[value] if isinstance(value, bool) else str(value)
        counts = dict(votes.counts)
        counts[name] = counts.get(name, 0) + 1
        changed["counts"] = tuple(counts.items())
    return votes.model_copy(update=changed)
