"""`ioa team` with no system in reach."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path

import pytest

from ioa.cli.teams import check_file, draw, is_file_of_team, read_team, run, show_plan, timeout_note, try_file
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError
from ioa.ports.meter import Meter
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goal_order import order_of
from ioa.protocol.team import document_of
from ioa.protocol.usage import Usage
from ioa.runtime.exit_code import ExitCode
from tests.unit.protocol.policies import SHIPPED


def test_a_good_file_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """With what it holds."""
    assert check_file(Terminal(as_json=False), SHIPPED / "debate.toml") is ExitCode.DONE
    assert capsys.readouterr().out == "debate: 3 roles, 2 nodes\n"


def test_a_file_with_errors_exits_2_and_names_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, or as JSON for programs."""
    file = tmp_path / "bad.toml"
    file.write_text((SHIPPED / "debate.toml").read_text().replace("max   = 6", "maxi = 6"))
    assert check_file(Terminal(as_json=False), file) is ExitCode.BAD_USE
    assert capsys.readouterr().out == "error: node debate: there is no `maxi`; did you mean `max`?\n"
    assert check_file(Terminal(as_json=True), file) is ExitCode.BAD_USE
    found = {"kind": "error", "where": "node debate", "what": "there is no `maxi`; did you mean `max`?"}
    assert json.loads(capsys.readouterr().out) == {"ok": False, "findings": [found]}


def test_json_is_read_as_toml_is(tmp_path: Path) -> None:
    """The name of the file tells which it is."""
    team = read_team(SHIPPED / "interview.toml")
    file = tmp_path / "interview.json"
    file.write_text(json.dumps(document_of(team)))
    assert read_team(file) == team


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(InvalidInputError, match="cannot be read: No such file or directory") as caught:
        read_team(tmp_path / "none.toml")
    assert str(caught.value).count("none.toml") == 1


def test_a_folder_does_not_hide_a_stored_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ioa team run notes` runs the stored team although a folder `notes` exists; a file `debate` is a team file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "debate").touch()
    assert [is_file_of_team(Path(name)) for name in ("notes", "debate", "other", "x/y.toml")] == [False, True, False, True]


async def test_a_picture_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Whole lines, to be piped into whatever draws Mermaid."""
    await draw(SHIPPED / "company.toml")
    assert capsys.readouterr().out.startswith("stateDiagram-v2\n    [*] --> n0\n")


def test_a_team_that_gives_out_tasks_is_tried_in_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are done at once, whoever gave them out speaks again, and where nobody may a script that does is told so."""
    script = tmp_path / "script"
    script.write_text(
        "coder => architect, reviewer: Write the board.\nreviewer => coder: Mend it.\nreviewer -> release: It works.\n"
    )
    try_file(Terminal(as_json=True), SHIPPED / "company.toml", script=script)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    code = [(one["speaker"], one["words"]) for one in told if one["node"] == "code"]
    assert code[:3] == [
        ("coder", "gives architect, reviewer a task: Write the board."),
        ("architect", "(architect does it)"),
        ("reviewer", "(reviewer does it)"),
    ]
    assert code[3][0] == "coder" and len(code) == 4
    assert [one["why"] for one in told if one["event"] == "refused"] == [
        "Nobody gives out tasks here, or waits for any: the node lacks `tasks`."
    ]


def test_a_team_is_tried_in_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who speaks when, with what a script has them choose; the end is told too."""
    script = tmp_path / "script"
    script.write_text("# the outliner chooses\noutliner -> section: One.\noutliner -> finish: Enough.\n")
    try_file(Terminal(as_json=True), SHIPPED / "paper-loop.toml", script=script)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["speaker"] for one in told] == ["analyst", "reader", "outliner", "writer", "outliner", "editor", "editor"]
    assert (told[2]["words"], told[-1]) == (
        "One.",
        {"event": "end", "turn": 7, "node": "", "speaker": "editor", "words": "states the conclusion"},
    )


def test_a_script_fills_forms_in_names_several_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A member without a line says nothing where a form must be filled in."""
    file, script = tmp_path / "jury.toml", tmp_path / "script"
    file.write_text(
        'team = "jury"\n[roles]\nhost = "h"\njuror = { agents = ["ada", "bob"] }\n'
        '[[nodes]]\nname = "talk"\nroles = ["host", "juror"]\nturns = { mode = "hub", by = "host" }\nmax = 9\n'
        'exits = [ { to = "vote", by = "host" } ]\n'
        '[[nodes]]\nname = "vote"\nroles = ["juror"]\nturns = "together"\nform = { score = "1..10", ok = "yes/no" }\n'
    )
    script.write_text("host > ada, bob: Well?\nhost -> vote: Enough.\nbob: Yes.\nbob {score = 7, ok = yes}: Good.\n")
    try_file(Terminal(as_json=True), file, script=script)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["turn"], one["speaker"], one["words"]) for one in told] == [
        (1, "host", "Well?"),
        (2, "ada", "(ada speaks)"),
        (2, "bob", "Yes."),
        (3, "host", "decides: vote (Enough.)"),
        (4, "ada", "(says nothing)"),
        (4, "bob", "Good. [score = 7, ok = true]"),
        (5, "host", "states the conclusion"),
    ]


def test_who_hears_what_is_told_where_not_all_do(capsys: pytest.CaptureFixture[str]) -> None:
    """For each turn that is kept from somebody, and for no other."""
    try_file(Terminal(as_json=True), SHIPPED / "werewolf.toml", script=None)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = {one["node"]: one.get("heard_by") for one in reversed(told) if one["event"] == "turn"}
    assert [first[node] for node in ("night", "wolves", "seer", "day")] == [None, ["god", "emma"], ["god"], None]


VOTE = """
team = "vote"
silent = "{silent}"
[roles]
v = {{ agents = ["ann", "bob", "cat"] }}
judge = "j"
[[nodes]]
name = "vote"
roles = ["v"]
form = {{ why = "text", ok = "yes/no?", n = "..?", out = "v?" }}
max = 4
asked = "turn"
exits = [ {{ to = "late", by = "judge" }} ]
[[nodes]]
name = "late"
roles = ["v"]
max = 1
""".replace("..?", "-9..-3?")


def _tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, silent: str = "skip", team: str | None = None
) -> list[tuple[str, str]]:
    file, lines = tmp_path / "vote.toml", tmp_path / "script"
    file.write_text(team or VOTE.format(silent=silent))
    lines.write_text(script)
    try_file(Terminal(as_json=True), file, script=lines)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [(one.get("speaker", ""), one.get("words", "") or str(one.get("lines"))) for one in told]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("why = okay then", "why = okay then"),
        ("why = it's", "why = it's"),
        ('why = "a, b} c"', "why = a, b} c"),
        ("why = 'BUG 12', out = \"cat\"", "why = BUG 12, out = cat"),
        ("why = x, ok = true", "why = x, ok = true"),
        ("why = x, ok = yes,", "why = x, ok = true"),
        ("why = x, ok = no, n = -4", "why = x, ok = false, n = -4"),
    ],
)
def test_values_stand_in_quotes_or_without(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, shown: str) -> None:
    """As inline tables of TOML have them, or as bare words."""
    assert _tried(tmp_path, capsys, f"ann {{{written}}}: So.")[0] == ("ann", f"So. [{shown}]")


def test_silence_loss_and_refusals_are_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rejected line is shown, and the member's next line is tried; a silent judge leaves the choice to the default."""
    script = "ann {why = w, ok = maybe}: A.\nann {why = w}: B.\njudge -> nowhere: x\njudge -> stay: y\njudge !silent\nbob !silent\n"
    script += "cat !lost\nann {why = w}: C.\ncat: I am gone."
    told = _tried(tmp_path, capsys, script)
    assert told == [
        ("ann", "A. [why = w, ok = maybe]"),
        ("ann", "B. [why = w]"),
        ("judge", "decides: nowhere (x)"),
        ("judge", "decides: stay (y)"),
        ("bob", "(says nothing)"),
        ("judge", "(says nothing: stay stands)"),
        ("cat", "(is lost)"),
        ("ann", "C. [why = w]"),
        ("judge", "decides: stay"),
        ("bob", "(says nothing)"),
        ("ann", "(ann speaks)"),
        ("ann", "states the conclusion"),
        ("", "[9]"),
    ]


@pytest.mark.parametrize(
    ("timeout", "note"),
    [
        (None, "the goal ends after 3,600 s, and boss may be waited for as long as 86,400 s: --timeout gives it more time"),
        (86_400.0, ""),
    ],
)
def test_who_runs_a_team_is_told_whom_its_goal_cannot_wait_for(tmp_path: Path, timeout: float | None, note: str) -> None:
    """The deadline ends the goal without the person's default, hours before its time is over."""
    file = tmp_path / "desk.toml"
    file.write_text(
        'team = "desk"\n[roles]\nclerk = "clerk"\nboss = { human = true, timeout = 86400 }\n'
        '[[nodes]]\nname = "work"\nroles = ["clerk", "boss"]\n'
    )
    team = read_team(file)
    assert timeout_note(team, order_of("Write.", team=team, timeout=timeout)) == note


def test_no_script_is_answered_with_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever stands in its lines is played, refused in the play, or refused as a line."""
    signs = (
        "ann",
        "judge",
        "{",
        "}",
        "=",
        '"',
        "'",
        ",",
        ":",
        ">",
        "->",
        "!",
        "lost",
        "ok",
        "why",
        "x" * 300,
        "\\u0000",
        "{a = 1}",
    )
    choice = random.Random(1).choice
    for _ in range(60):
        script = "\n".join(
            f"{choice(('ann', 'judge'))} {' '.join(choice(signs) for _ in range(choice((1, 3, 6))))}: x" for _ in range(2)
        )
        with suppress(InvalidInputError):
            _tried(tmp_path, capsys, script)


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.toml")), ids=lambda file: file.stem)
def test_each_team_that_ships_can_be_tried(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever chooses nothing is led by the policy to the end."""
    try_file(Terminal(as_json=False), file, script=None)
    assert capsys.readouterr().out.splitlines()[-1].endswith(("states the conclusion", "the group has ended: concluded"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("outliner says hm", "Line 1 of the script is none of `who: words`"),
        ('outliner {"out": "cat"}: C', r"""Line 1 of the script fills in `"out": "cat"`; write `{field = value"""),
        ('outliner {out = "cat: C', "Line 1 of the script is none of"),
        ("outliner !gone", "Line 1 of the script is none of"),
        (
            "# hm\nzoe: x\noutlner: y",
            r"zoe \(line 2\), outlner \(line 3; did you mean `outliner`\?\): nobody is called so; members are",
        ),
    ],
)
def test_a_script_that_cannot_be_played_says_where(tmp_path: Path, line: str, why: str) -> None:
    """By the line, or by who is meant."""
    script = tmp_path / "script"
    script.write_text(line)
    with pytest.raises(InvalidInputError, match=why):
        try_file(Terminal(as_json=True), SHIPPED / "paper-loop.toml", script=script)


async def test_team_without_a_goal_needs_one(tmp_path: Path) -> None:
    """Before anything is started."""
    bare = tmp_path / "bare.toml"
    bare.write_text('team = "t"\n[roles]\na = "ada"\n[[nodes]]\nname = "x"\nroles = ["a"]\n')
    with pytest.raises(InvalidInputError, match="has no goal of its own"):
        await run(Terminal(as_json=False), bare)


def test_plan_is_a_team_file_with_author_and_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan is written to a file that reads back equal, or to standard output. `--json` contains the author and the cost."""
    team, meter, file = read_team(SHIPPED / "debate.toml"), Meter(Usage(tokens_in=1_200, tokens_out=400)), tmp_path / "plan.toml"
    meter.decided_by = DecidedBy(kind="rules", instead_of="gpt", cause="useless_answer")
    show_plan(team, meter, file, Terminal(as_json=False))
    told = capsys.readouterr()
    assert (read_team(file), told.out) == (team, "")
    assert told.err == "Planned by rules instead of gpt: useless_answer, 1,600 tokens\n"
    show_plan(team, meter, None, Terminal(as_json=True))
    document = json.loads(capsys.readouterr().out)
    assert (document["team"], document["usage"]) == (document_of(team), {"tokens_in": 1_200, "tokens_out": 400})
    show_plan(None, Meter(), None, Terminal(as_json=False))
    assert capsys.readouterr() == ("", "The goal needs no policy: `ioa run` it.\n")
