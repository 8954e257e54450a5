"""Where a setting of a model may be said, and what wins."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from ioa import Agent, ModelAgent
from ioa.adapters.openai.settings import ModelSettings, models_named
from ioa.agent.rules import RuleBrain
from ioa.errors import InvalidInputError
from ioa.hosting.brains import check_models, open_minds
from ioa.hosting.configured_model import model_of

KEY = "sk-very-secret-indeed"
URL = "https://models.example.com/v1"
SAID: dict[str, tuple[str, str, object]] = {
    "base_url": (URL + "/", f'"{URL}/"', URL),
    "model": ("large", '"large"', "large"),
    "api_key_header": ("api-key", '"api-key"', "api-key"),
    "context": ("9000", "9000", 9_000),
    "max_prompt": ("8000", "8000", 8_000),
    "max_answer": ("800", "800", 800),
    "timeout": ("PT1M", "60", timedelta(minutes=1)),
    "patience": ("90", '"PT90S"', timedelta(seconds=90)),
    "fallback": ("rules", '"rules"', "rules"),
    "temperature": ("0", "0", 0.0),
    "reasoning_effort": ("low", '"low"', "low"),
    "seed": ("7", "7", 7),
    "format": ("plain", '"plain"', "plain"),
    "stream": ("false", "false", False),
    "extra": ('{"top_p": 0.5}', "{top_p = 0.5}", {"top_p": 0.5}),
    "concurrency": ("2", "2", 2),
    "price_in": ("2.5", "2.5", 2.5),
    "price_cached": ("0.5", "0.5", 0.5),
    "price_out": ("10", "10", 10.0),
    "now": ("2031-02-03T04:05:00Z", "2031-02-03T04:05:00Z", datetime(2031, 2, 3, 4, 5, tzinfo=UTC)),
}
"""Each setting but the key: as a variable, in the file, and what it is."""


def _file(folder: Path, text: str) -> dict[str, str]:
    path = folder / "models.toml"
    path.write_text(text)
    return {"IOA_LLM_CONFIG": str(path)}


def _agent(model: ModelSettings | str | None = None) -> Agent:
    return Agent("writer", "Writes letters", model=model)


def _had(env: dict[str, str], model: ModelSettings | str | None = None) -> ModelSettings:
    settings = model_of(env, _agent(model))
    assert settings is not None
    return settings


def test_each_setting_is_a_variable_a_key_of_the_file_and_a_field_of_an_agents_model(tmp_path: Path) -> None:
    """One table tells of all of them, and each means the same wherever it stands."""
    assert {one.name for one in fields(ModelSettings)} == {*SAID, "api_key"}
    told: dict[str, Any] = {name: value for name, (_, _, value) in SAID.items()}
    (tmp_path / "key").write_text(f"{KEY}\n")
    own = ModelSettings(**told, api_key=SecretStr(KEY))
    env = {f"IOA_LLM_{name.upper()}": written for name, (written, _, _) in SAID.items()} | {"IOA_LLM_API_KEY": KEY}
    keys = "\n".join(f"{name} = {written}" for name, (_, written, _) in SAID.items())
    assert _had({}, own) == own
    assert _had(env) == own
    for table in ("model", "agents.writer"):
        assert _had(_file(tmp_path, f'[{table}]\napi_key_file = "key"\n{keys}')) == own
        assert _had(_file(tmp_path, f'[{table}]\napi_key_env = "SECRET"\n{keys}') | {"SECRET": KEY}) == own


def test_what_is_said_nearer_to_the_agent_and_its_deployment_wins(tmp_path: Path) -> None:
    """Built in, author, the file's model, environment, the file's agent: each takes one setting more from those before it."""
    own = ModelSettings(URL, "own", max_answer=1_001, seed=1, context=1_001, temperature=0.1)
    file = _file(
        tmp_path,
        "[model]\nseed = 2\ncontext = 1002\ntemperature = 0.2\n[agents.writer]\ntemperature = 0.4\n[agents.other]\nseed = 9",
    )
    settings = _had(file | {"IOA_LLM_CONTEXT": "1003", "IOA_LLM_TEMPERATURE": "0.3", "OPENAI_MODEL": "usual"}, own)
    said = (settings.max_prompt, settings.max_answer, settings.seed, settings.context, settings.temperature, settings.model)
    assert said == (100_000, 1_001, 2, 1_003, 0.4, "own")


def test_a_model_is_named_by_an_author_or_for_an_agent(tmp_path: Path) -> None:
    """Its table goes over that of all, and what is said of the agent alone over it; without a name of its own it is called so."""
    models = f'[model]\nbase_url = "{URL}"\nmodel = "small"\nseed = 1\n[models.large]\nseed = 2\nprice_in = 3\n'
    named = _had(_file(tmp_path, models), "large")
    assert (named.base_url, named.model, named.seed, named.price_in) == (URL, "large", 2, 3.0)
    given = _had(
        _file(tmp_path, models + '[models.large-2]\nmodel = "L2"\n[agents.writer]\nmodel = "large-2"\nprice_out = 4'), "large"
    )
    assert (given.model, given.seed, given.price_out) == ("L2", 2, 4.0)
    with pytest.raises(InvalidInputError, match=r"'writer' has the model 'larg', and no table \[models.larg\] .*models.large"):
        model_of(_file(tmp_path, models), _agent("larg"))
    with pytest.raises(InvalidInputError, match="IOA_LLM_CONFIG"):
        check_models([_agent("large")], {})


def test_a_key_goes_to_no_address_but_its_own(tmp_path: Path) -> None:
    """Whoever says another address says its key too, or none is sent there."""
    (tmp_path / "key").write_text(KEY)
    first = f'[model]\nbase_url = "{URL}"\nmodel = "m"\napi_key_file = "key"\n'
    other = 'base_url = "https://other.example.com"'
    own = ModelSettings(URL, "m", SecretStr(KEY))
    cases: list[tuple[str, dict[str, str], ModelSettings | str | None]] = [
        (f"{first}[agents.writer]\n{other}", {}, None),
        (f"{first}[models.large]\n{other}", {}, "large"),
        (f"{first}[models.large]\n{other}\n[agents.writer]\nmodel = 'large'", {}, None),
        (f"[model]\n{other}", {}, own),
        ("", {"IOA_LLM_API_KEY": KEY}, ModelSettings("https://other.example.com", "m")),
        ("", {"IOA_LLM_MODEL": "m", "OPENAI_BASE_URL": "https://other.example.com"}, own),
        (first, {"IOA_LLM_BASE_URL": "https://other.example.com"}, None),
        (f"[model]\n{other}\nmodel = 'm'", {"OPENAI_API_KEY": KEY}, None),
    ]
    for text, env, model in cases:
        settings = _had(_file(tmp_path, text) | env, model)
        assert (settings.base_url, settings.api_key) == ("https://other.example.com", None)
    assert _had(_file(tmp_path, f"{first}[agents.writer]\nmodel = 'n'")).api_key == SecretStr(KEY)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[model]\ntemprature = 1", "[model] temprature: there is no such setting (the nearest is temperature)"),
        ("[modle]\nseed = 1", "[modle] is no table of it (the nearest is [model])"),
        ("[agents]\nwriter = 'm'", "[agents.writer]: it is no table"),
        ("[agents.other]\nextra = '['", "[agents.other] extra: it is no JSON"),
        (f"[model]\napi_key = '{KEY}'", "[model] api_key: the file holds no keys"),
        (f"[model]\nseed = '{KEY}'", "[model] seed: "),
        ("[model]\napi_key_file = 'nowhere'", "[model] api_key_file: the file cannot be read"),
        ("[agents.writer]\napi_key_env = 'NOWHERE'", "[agents.writer] api_key_env: the variable NOWHERE is not set"),
        ("[model]\napi_key_env = 'A'\napi_key_file = 'b'", "[model]: api_key_env and api_key_file are both set"),
        ("[model", "is no TOML"),
    ],
)
def test_an_error_names_the_file_with_its_table_and_key(tmp_path: Path, text: str, told: str) -> None:
    """What is misspelt is refused with the one that was meant, and no error holds a key, nor does any error behind it."""
    env = _file(tmp_path, text)
    with pytest.raises(InvalidInputError) as caught:
        model_of(env, _agent())
    assert str(caught.value).startswith(f"IOA_LLM_CONFIG: {env['IOA_LLM_CONFIG']}") and told in str(caught.value)
    assert KEY not in f"{caught.value!r} {caught.value.__context__} {caught.value.__cause__}"


def test_no_settings_show_their_key(tmp_path: Path) -> None:
    """Neither as they are, nor where another of them is wrong."""
    with pytest.raises(ValidationError, match="temperature") as caught:
        ModelSettings(URL, "m", SecretStr(KEY), temperature=9, extra={"key": KEY})
    with pytest.raises(InvalidInputError, match="cannot be read: No such file"):
        model_of({"IOA_LLM_CONFIG": str(tmp_path / "nowhere.toml")})
    assert KEY not in f"{ModelSettings(URL, 'm', SecretStr(KEY))} {caught.value}"


async def test_agents_with_the_same_model_have_one_client_together(tmp_path: Path) -> None:
    """Of each distinct model there is one; an agent for which the file names none goes by rules."""
    env = _file(tmp_path, "[models.large]\n[agents.a]\nmodel = 'large'\n[agents.b]\nmodel = 'large'\n[agents.c]\nmodel = 'small'")
    agents = [Agent(name, "Works") for name in "abcd"]
    async with open_minds(agents, env) as [a, b, c, d]:
        assert (a.chat is b.chat, a.chat is c.chat, type(d.brain)) == (True, False, RuleBrain)
    assert models_named(env)
    with pytest.raises(InvalidInputError, match="IOA_LLM_MODEL"):
        check_models([ModelAgent("d", "Writes", instructions="Be kind.")], env)
