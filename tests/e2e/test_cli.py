"""Every command on a running system of real processes, for people and for programs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import nats
import pytest

from tests.e2e.command_line import CommandLine, Running, running_system
from tests.rig.deadline import eventually


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A folder to run commands in."""
    return CommandLine(tmp_path_factory.mktemp("user"))


@pytest.fixture(scope="module")
def system(command: CommandLine) -> Iterator[Running]:
    """A running system with three agents; the commands find it by the folder."""
    with running_system(command, "--pool", command.write_pool("greeter", "waiter", "breaker")) as running:
        yield running


@pytest.fixture(scope="module")
def greeted(command: CommandLine, system: Running) -> list[dict[str, Any]]:
    """A goal that is done: the JSON lines of `ioa run`."""
    (command.folder / "ada.txt").write_text("Ada", encoding="utf-8")
    limits = ("--max-tokens", "100", "--max-cost", "0.5")
    return command.lines("run", "Greet Ada", "--input", "ada.txt", "--agent", "greeter", "--out", "out", *limits)


def test_a_goal_is_followed_to_its_result(greeted: list[dict[str, Any]], command: CommandLine) -> None:
    """`ioa run --json` writes the goal, then each entry, then the result with its files."""
    assert [line["event"] for line in greeted] == ["goal", *["entry"] * (len(greeted) - 2), "result"]
    assert {"INFORM_TASK_PROGRESS", "INFORM_TASK_RESULT", "CONCLUSION"} <= {line.get("type") for line in greeted}
    file = f"out/{greeted[0]['goal_id']}/greeting.txt"
    assert (greeted[-1]["reason"], greeted[-1]["files"]) == ("concluded", [file])
    assert (command.folder / file).read_text(encoding="utf-8") == "Hello from a file, ada.txt!"


def test_output_for_people_names_speakers_and_files(system: Running, command: CommandLine) -> None:
    """`ioa run` shows speaker, kind of message and tasks on standard error, the answer and the files on standard output."""
    done = command.run("run", "Greet Ada", "--agent", "waiter", "--out", "people")
    assert (done.returncode, "\x1b" in done.stdout + done.stderr) == (0, False), done.stderr
    for words in ("greeter", "sync task", "t1-t1 started"):
        assert (words in done.stdout, words in done.stderr) == (False, True)
    assert done.stdout.startswith("Hello, nobody in particular!")
    assert done.stdout.splitlines()[-1].startswith("file  people/goal-")


def test_quiet_tells_only_the_answer(system: Running, command: CommandLine) -> None:
    """The goal can come from standard input; only the answer and its files are written."""
    done = command.run("run", "-", "--agent", "greeter", "--quiet", given="Greet Ada\n")
    assert (done.returncode, done.stderr, done.stdout.splitlines()[0]) == (0, "", "Hello, nobody in particular!")
    assert [line["event"] for line in command.lines("run", "Greet Ada", "--agent", "greeter", "--quiet")] == ["result"]


def test_rerun_of_an_entry_launches_a_linked_goal(greeted: list[dict[str, Any]], command: CommandLine) -> None:
    """`ioa rerun` continues with the new message; `ioa goals --label` finds the rerun; an unknown entry exits with 2."""
    [goal, *entries, _] = greeted
    said = next(entry["seq"] for entry in entries if entry["type"] == "CONCLUSION")
    rerun = command.lines("rerun", goal["goal_id"], "--at", str(said), "Say good morning.", "--out", "again")
    assert rerun[-1]["reason"] == "concluded"
    assert rerun[0]["goal"].startswith(goal["goal"]) and rerun[0]["goal"].endswith("(conclusion): Say good morning.")
    listed = json.loads(command.run("goals", "--label", f"rerun-of={goal['goal_id']}", "--json").stdout)
    assert [row["goal_id"] for row in listed] == [rerun[0]["goal_id"]]
    refused = command.run("rerun", goal["goal_id"], "--at", "1000000000", "x")
    assert (refused.returncode, "has no entry 1000000000" in " ".join(refused.stderr.split())) == (2, True)


def test_answer_is_written_although_its_files_cannot_be(greeted: list[dict[str, Any]], command: CommandLine) -> None:
    """An existing folder is reported after the answer; a folder that cannot be created is rejected before the goal is launched."""
    goal_id = greeted[0]["goal_id"]
    (command.folder / "taken" / goal_id).mkdir(parents=True)
    watched = command.run("goal", "watch", goal_id, "--out", "taken")
    (result,) = [line for line in command.lines("goal", "watch", goal_id, "--out", "taken") if line["event"] == "result"]
    assert (watched.returncode, watched.stdout.splitlines()[0]) == (2, "Hello from a file, ada.txt!".replace(" from a file", ""))
    assert ("is there already" in watched.stderr, result["files"], list((command.folder / "taken" / goal_id).iterdir())) == (
        True,
        [],
        [],
    )
    before = len(command.document("goals"))
    refused = command.run("run", "Greet Ada", "--out", "ada.txt", "--json")
    assert (refused.returncode, json.loads(refused.stderr)["code"], len(command.document("goals"))) == (2, "not_written", before)


def test_a_goal_that_fails_says_why(system: Running, command: CommandLine) -> None:
    """The exit code of a failed goal is 1 and its result names the typed reason."""
    done = command.run("run", "Break a vase", "--agent", "breaker", "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, result["succeeded"], result["reason"]) == (1, False, "failed"), done.stdout
    assert "steel" in result["content"]


def test_lists_hold_what_is_there(greeted: list[dict[str, Any]], command: CommandLine) -> None:
    """`goals`, `groups` and `agents` list the same in words and as JSON: a page, all pages, or only open goals."""
    goal_id, comm_id = greeted[0]["goal_id"], greeted[0]["comm_id"]
    goals = {goal["goal_id"]: goal["status"] for goal in command.document("goals")}
    groups = {group["comm_id"]: group["phase"] for group in command.document("groups")}
    agents = {agent["agent_id"]: agent["online"] for agent in command.document("agents")}
    assert (goals[goal_id], groups[comm_id], agents) == (
        "concluded",
        "concluded",
        {"breaker": True, "greeter": True, "waiter": True},
    )
    for name, words in (("goals", goal_id), ("groups", comm_id), ("agents", "Greets people politely")):
        assert words in command.run(name).stdout
    assert len(command.document("goals", "--limit", "1")) == 1
    assert goal_id in [line["goal_id"] for line in command.document("goals", "--limit", "5000")]
    assert comm_id in [line["comm_id"] for line in command.document("groups", "--limit", "5000")]
    assert goal_id not in [goal["goal_id"] for goal in command.document("goals", "--open")]
    assert command.run("goals", "--limit", "0").returncode == 2


def test_dry_run_of_prune_counts_goals(greeted: list[dict[str, Any]], command: CommandLine) -> None:
    """A dry run counts what ended long enough ago and leaves it; an age that is none is wrong use."""
    would = command.document("prune", "--older-than", "0s", "--dry-run")
    assert (would["dry_run"], would["goals"]["concluded"] >= 1, would["not_removed"]) == (True, True, 0)
    assert command.document("prune", "--older-than", "7d", "--dry-run")["goals"] == {}
    assert "0 goals removed" in command.run("prune").stdout
    assert command.document("goal", "show", greeted[0]["goal_id"])["status"] == "concluded"
    assert command.run("prune", "--older-than", "soon").returncode == 2
    assert (command.run("agents", "remove", "nobody").returncode, command.run("agents", "remove", "greeter").returncode) == (2, 2)


def test_agents_are_found_by_need(system: Running, command: CommandLine) -> None:
    """`ioa agents search` answers each need with the agent that fits it."""
    found = command.document("agents", "search", "say hello", "smash something", "--budget", "2")
    best = [need["hits"][0] for need in found["by_need"]]
    assert [hit["agent_id"] for hit in best] == found["merged"] == ["greeter", "breaker"]
    assert {one["signal"] for one in best[0]["why"]["signals"]} == {"text", "examples", "bm25"}
    assert "greeter" in command.run("agents", "search", "say hello").stdout


def test_a_goal_is_shown_by_the_beginning_of_its_id(greeted: list[dict[str, Any]], command: CommandLine) -> None:
    """`ioa goal show` takes a unique beginning, and fetches the files again, and what its tasks noted of their steps."""
    start = greeted[0]["goal_id"][:16]
    shown = command.document("goal", "show", start, "--out", "again")
    file, trace = shown["files"]
    assert json.loads((command.folder / trace).read_text(encoding="utf-8")) == {"greeted": "ada.txt"}
    assert (shown["result"]["content"], file) == (greeted[-1]["content"], f"again/{greeted[0]['goal_id']}/greeting.txt")
    text = command.run("goal", "show", start).stdout
    assert all(words in text for words in ("Greet Ada", "`ioa goal show", "0 of 100", "0 of 0.5"))


def test_a_group_is_shown_and_replayed(greeted: list[dict[str, Any]], command: CommandLine) -> None:
    """`ioa groups ID` shows every message and task, `--replay` computes the same states, and `watch` repeats the entries."""
    comm_id = greeted[0]["comm_id"]
    shown = command.document("groups", comm_id)
    replayed = command.lines("groups", comm_id, "--replay")
    assert [entry["seq"] for entry in shown["entries"]] == [line["seq"] for line in greeted if line["event"] == "entry"]
    assert [task["status"] for task in shown["groups"][0]["tasks"]] == ["done"]
    assert replayed[-1] == {"event": "replayed", "entries": len(shown["entries"]), "groups": 1, "reproduced": True}
    watched = command.lines("goal", "watch", greeted[0]["goal_id"])
    assert [line for line in watched if line["event"] == "entry"] == [line for line in greeted if line["event"] == "entry"]
    assert "every state is reproduced" in command.run("groups", comm_id, "--replay").stdout
    assert "t1-t1" in command.run("groups", comm_id).stdout


def test_a_run_that_is_interrupted_leaves_its_goal(system: Running, command: CommandLine) -> None:
    """Ctrl-C ends `ioa run` with 130 and names the next commands; the goal runs until it is cancelled."""
    process = command.start("run", "Wait for the signal", "--agent", "waiter")
    assert process.stderr is not None
    for line in process.stderr:
        if "t1-t1 started" in line:
            break
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    goal_id = said.partition("ioa goal cancel ")[2].partition("`")[0]
    assert (process.returncode, command.document("goal", "show", goal_id)["status"]) == (130, "assigned")
    assert command.document("goal", "cancel", goal_id, "--why", "enough")["reason"] == "cancelled"
    assert command.run("goal", "watch", goal_id).returncode == 1


def test_unknown_ids_are_the_callers_mistake(system: Running, command: CommandLine) -> None:
    """An unknown id exits with 2 and one JSON object with a command that lists the ids."""
    for arguments in (("goal", "show", "nope"), ("goal", "cancel", "nope"), ("groups", "nope"), ("groups", "nope", "--replay")):
        done = command.run(*arguments, "--json")
        error = json.loads(done.stderr)
        assert (done.returncode, done.stdout, error["code"]) == (2, "", "not_found")
        assert f"`ioa {arguments[0].rstrip('s')}s`" in error["hint"]


def test_an_agent_joins_from_a_file(system: Running, command: CommandLine) -> None:
    """`ioa agent run FILE.py:ATTR` serves under its replica's id until SIGTERM, and goes offline."""
    process = command.start("agent", "run", command.folder / "agents.py:greeter", "--replica", "7", "--json")
    assert process.stdout is not None and process.stderr is not None
    joining = json.loads(process.stdout.readline())
    for line in process.stderr:
        if "agent_ready" in line:
            break
    online = {agent["agent_id"]: agent["pool"] for agent in command.document("agents", "--online")}
    process.terminate()
    process.communicate(timeout=60)
    after = {agent["agent_id"] for agent in command.document("agents", "--online")}
    assert (joining["agents"], online["greeter-7"], process.returncode) == (["greeter-7"], "greeter", 0)
    assert "greeter-7" not in after


def test_a_second_system_on_the_folder_or_port_is_refused(system: Running, command: CommandLine, tmp_path: Path) -> None:
    """`ioa up` reports that the folder, or the port, is in use, and exits with 2."""
    folder = command.run("up", "--port", "0", "--json")
    port = command.run("up", "--data", tmp_path / "other", "--port", system.url.rpartition(":")[2])
    assert (folder.returncode, json.loads(folder.stderr)["code"]) == (2, "already_running")
    assert (port.returncode, "is in use by another program" in port.stderr) == (2, True)


def test_the_doctor_finds_a_healthy_system(system: Running, command: CommandLine) -> None:
    """`ioa doctor` exits 0 when all is well, in words and as JSON."""
    document = command.document("doctor", "--probe")
    assert "a router ended it" in document["findings"][-1]["message"]
    statuses = {one["check"]: one["status"] for one in document["findings"]}
    left = statuses.pop("dead letters")  # by other tests
    assert (document["healthy"], left in ("ok", "warning"), set(statuses.values())) == (True, True, {"ok"})
    assert "healthy" in command.run("doctor").stdout


async def test_doctor_probe_finds_a_queue_that_delivers_nothing(system: Running, command: CommandLine) -> None:
    """All services answer pings, so that only the goal of `ioa doctor --probe` finds the fault."""
    stream, told = "IOA_TIMERS", "has no result 5 s after its deadline"
    async with await nats.connect(system.private_url) as client:
        js = client.jetstream()

        async def problems() -> list[tuple[str, bool]]:
            for queue in await js.consumers_info(stream):  # repeated, because the readers of a queue create it again periodically
                await js.pause_consumer(stream, queue.name, "2100-01-01T00:00:00Z")
            written = (await asyncio.to_thread(command.run, "doctor", "--probe", "--json")).stdout
            return [(one["check"], told in one["message"]) for one in json.loads(written)["findings"] if one["status"] == "problem"]

        try:
            await eventually(problems, lambda found: found == [("probe", True)], within=timedelta(seconds=60))
        finally:
            for queue in await js.consumers_info(stream):
                await js.resume_consumer(stream, queue.name)


# What any program can do: speak NATS's protocol, and nothing else, over a plain socket, in one packet.
_STRANGER = r"""
exec 3<>/dev/tcp/127.0.0.1/$0
read -r greeting <&3
printf 'CONNECT {"verbose":false}\r\nPUB ioa.v1.goal.local 9\r\nGreet Zoe\r\nPING\r\n' | cat >&3
read -r answer <&3
echo "$answer"
cat "$1"
"""


def test_other_users_of_the_machine_are_not_let_in(system: Running, command: CommandLine) -> None:
    """A user that cannot read the folder publishes no goal, and so starts nothing in its owner's name; the folder is closed."""
    arguments = ["bash", "-c", _STRANGER, system.url.rpartition(":")[2], str(system.data / "private-url")]
    user, group = (65_534, 65_534) if os.geteuid() == 0 else (None, None)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30, cwd="/", user=user, group=group)
    assert done.stdout.strip().startswith("-ERR 'Authorization Violation'")
    if user is not None:
        assert "Permission denied" in done.stderr
    assert not any("Zoe" in goal["goal"] for goal in command.document("goals"))


async def test_any_nats_client_can_publish_a_goal(system: Running, command: CommandLine) -> None:
    """Text and JSON become goals whose results appear on their subjects; garbage becomes a dead letter with its reason."""
    async with await nats.connect(system.private_url) as client:
        js = client.jetstream()
        await client.publish("ioa.v1.goal.local", b"Greet somebody")
        order = {"goal": "Greet Bob", "goal_id": "by-hand", "agent": "greeter", "inputs": [{"name": "bob.txt", "text": "Bob"}]}
        await client.publish("ioa.v1.goal.local", json.dumps(order).encode())
        await client.publish("ioa.v1.goal.local", b'{"gaol": "Greet nobody"}')
        await client.flush()
        results = await js.subscribe("ioa.v1.result.local.by-hand")
        dead = await js.subscribe("ioa.v1.dead.*")
        result = json.loads((await results.next_msg(timeout=30)).data)
        while b"Greet nobody" not in (letter := await dead.next_msg(timeout=30)).data:
            pass  # what other tests of this system were refused
    assert (result["reason"], "bob.txt" in result["content"]) == ("concluded", True)
    assert (letter.subject, letter.data) == ("ioa.v1.dead.unreadable", b'{"gaol": "Greet nobody"}')
    goals = await asyncio.to_thread(command.document, "goals")
    assert "Greet somebody" in [goal["goal"] for goal in goals]
    warning = next(
        one for one in (await asyncio.to_thread(command.document, "doctor"))["findings"] if one["check"] == "dead letters"
    )
    assert (warning["status"], "gaol" in warning["message"] or "goal" in warning["message"]) == ("warning", True)


@pytest.mark.parametrize(
    ("variables", "arguments", "why"),
    [
        ({"IOA_LOG_LEVLE": "debug"}, ("agents",), "IOA_LOG_LEVLE is no setting (the nearest is IOA_LOG_LEVEL)"),
        ({"IOA_LOG_LEVLE": "debug"}, ("up",), "IOA_LOG_LEVLE is no setting (the nearest is IOA_LOG_LEVEL)"),
        ({}, ("up", "--pool", "pool.toml"), "IOA_AGENT_DATAS is no setting (the nearest is IOA_AGENT_DATA)"),
        ({"IOA_METRICS_PORT": "9464"}, ("up",), "IOA_METRICS_PORT is 9464, but a system on one machine is many processes"),
    ],
)
def test_invalid_setting_ends_a_command(variables: dict[str, str], arguments: tuple[str, ...], why: str, tmp_path: Path) -> None:
    """Before anything is started: a variable of the shell or of a pool file that is no setting, or a port of all processes."""
    user = CommandLine(tmp_path, variables)
    pool = user.write_pool("greeter")
    pool.write_text(pool.read_text(encoding="utf-8") + 'env = {IOA_AGENT_DATAS = "/tmp"}\n', encoding="utf-8")
    done = user.run(*arguments, *(["--port", "0"] if "up" in arguments else []))
    assert (done.returncode, why in done.stderr, (tmp_path / ".ioa").exists()) == (2, True, False), done.stderr
