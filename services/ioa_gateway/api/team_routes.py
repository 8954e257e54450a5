"""Routes of named teams: list, show and put."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query

from ioa.errors import InvalidInputError
from ioa.protocol.model import Time
from ioa.protocol.teams.stored_teams import NamedTeam, TeamList, TeamReference, TeamRow, VersionNumber, team_name
from ioa.protocol.teams.team_file import document_of, team_of
from ioa_gateway.context import ReadCall, TeamsCall

router = APIRouter()


class TeamDocument(TeamRow):
    """One version of a team; `team` has the form of a team file."""

    at: Time
    team: dict[str, Any]


@router.get("/teams")
async def list_teams(call: ReadCall) -> TeamList:
    """List teams by name, each with its newest version and its user."""
    return TeamList(teams=tuple(await call.client.teams()))


@router.get("/teams/{name}")
async def show(
    call: ReadCall,
    name: str,
    version: Annotated[VersionNumber | None, Query(description="the version; default: the newest one")] = None,
) -> TeamDocument:
    """Show a team in the form of a team file."""
    found = await call.client.team(str(TeamReference(team_name(name), version)))
    return TeamDocument.model_validate({**dict(found), "team": document_of(found.team)})


@router.put("/teams/{name}", response_model=TeamRow)
async def put(call: TeamsCall, name: str, document: Annotated[dict[str, Any], Body()]) -> NamedTeam:
    """Put a team, in the form of a team file, under its name as the next version. The newest version is not stored again."""
    team = team_of(document)
    if team.team != name:
        raise InvalidInputError(f"The team is called {team.team!r}, and the path names {name!r}: give it one name.")
    return await call.client.put_team(team)
