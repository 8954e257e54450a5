"""Which brain runs, and how its model answers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.agent.model import Budget
from ioa.cli.doctor import Health, model_finding
from ioa.cli.output.terminal import Terminal
from ioa.cli.up import report_model
from ioa.hosting.brains import budget_of
from ioa.hosting.configured_model import ask_model, model_of
from tests.rig.http_script import Line, completion, serving

KEY = "sk-very-secret-indeed"


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no line broken, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "400")


def _environment(url: str) -> dict[str, str]:
    return {"IOA_LLM_BASE_URL": url, "IOA_LLM_MODEL": "tiny", "IOA_LLM_API_KEY": KEY}


async def _told(capsys: pytest.CaptureFixture[str], *lines: Line) -> str:
    with serving(*lines) as (url, _):
        await report_model(Terminal(as_json=False), model_of(_environment(url)))
    return capsys.readouterr().err


async def test_without_a_model_rules_decide(capsys: pytest.CaptureFixture[str]) -> None:
    """It is reported, and no model is called."""
    await report_model(Terminal(as_json=False), model_of({"OPENAI_API_KEY": KEY}))
    finding = model_finding(None)
    assert (capsys.readouterr().err, finding.health) == (f"model: {finding.message}\n", Health.OK)


async def test_model_is_reported_with_its_host_and_fault(capsys: pytest.CaptureFixture[str]) -> None:
    """The model, the host, and the seconds or the fault with its fix; the key is not shown."""
    answers, rejects = await _told(capsys, completion('{"word": "ready"}')), await _told(capsys, Line(status=401, body=KEY))
    assert answers.startswith("model: tiny at 127.0.0.1:") and answers.endswith(" s\n")
    assert "does not serve as agents ask it: " in rejects and "refuses the key (401). Check IOA_LLM_API_KEY." in rejects
    assert KEY not in answers + rejects


async def test_the_doctor_asks_the_model() -> None:
    """A model that does not answer, or not in the form, is a problem with a fix; otherwise the duration is reported."""
    findings = []
    for line in (completion('{"word": "ready"}'), Line(status=404, body="no such model"), completion("Well, ready!")):
        with serving(line) as (url, _):
            settings = model_of(_environment(url))
            assert settings is not None
            findings.append(model_finding(await ask_model(settings)))
    assert [finding.health for finding in findings] == [Health.OK, Health.PROBLEM, Health.PROBLEM]
    told = ("answered in" in findings[0].message, "IOA_LLM_MODEL" in findings[1].hint, "Well, ready!" in findings[2].message)
    assert told == (True, True, True)


@pytest.mark.parametrize(("calls", "health"), [([{"id": "1", "function": {"name": "ready"}}], Health.OK), ([], Health.WARNING)])
async def test_doctor_tests_a_tool_call(calls: list[object], health: Health) -> None:
    """A model that calls no tool is a warning."""
    with serving(completion('{"word": "ready"}'), completion("", tool_calls=calls)) as (url, _):
        settings = model_of(_environment(url))
        assert settings is not None
        finding = model_finding(await ask_model(settings, thoroughly=True))
    assert finding.health == health


def test_budget_is_read_from_the_environment() -> None:
    """Each variable is one setting, an empty variable none; an error names its variable."""
    said = {
        "IOA_LLM_MODEL": "large",
        "IOA_LLM_MAX_ANSWER": "800",
        "IOA_LLM_TIMEOUT": "PT1M",
        "IOA_LLM_PATIENCE": "90",
        "IOA_LLM_PRICES": "2.5,10",
        "IOA_LLM_EXTRA": "",
    }
    settings = model_of(said)
    assert settings is not None
    assert budget_of(settings) == Budget(
        max_answer=800,
        answer_timeout=timedelta(minutes=1),
        decision_timeout=timedelta(seconds=90),
        prompt_price=2.5,
        answer_price=10.0,
        model="large",
    )
