"""Sources of a model's settings, and their precedence."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from ioa import Agent, ModelAgent
from ioa.adapters.openai.settings import ModelSettings, models_named
from ioa.agent.rules import RuleBrain
from ioa.errors import InvalidInputError
from ioa.hosting.brains import open_minds
from ioa.hosting.configured_model import model_of

KEY = "sk-very-secret-indeed"
URL = "https://models.example.com/v1"
OTHER = "https://other.example.com"
WRITTEN: dict[str, tuple[str, str, object]] = {
    "base_url": (URL + "/", f'"{URL}/"', URL),
    "model": ("large", '"large"', "large"),
    "context": ("9000", "9000", 9_000),
    "max_answer": ("800", "800", 800),
    "timeout": ("PT1M", "60", timedelta(minutes=1)),
    "patience": ("90", '"PT90S"', timedelta(seconds=90)),
    "prices": ("2.5, 10,0.5", "[2.5, 10, 0.5]", (2.5, 10.0, 0.5)),
    "extra": ('{"top_p": 0.5}', "{top_p = 0.5}", {"top_p": 0.5}),
}
"""Each setting but the key: as a variable, in the file, and its value."""


def _file(folder: Path, text: str) -> dict[str, str]:
    path = folder / "models.toml"
    path.write_text(text)
    return {"IOA_LLM_CONFIG": str(path)}


def _agent(model: ModelSettings | None = None) -> Agent:
    return Agent("writer", "Writes letters", model=model)


def _read(env: dict[str, str], model: ModelSettings | None = None) -> ModelSettings:
    settings = model_of(env, _agent(model))
    assert settings is not None
    return settings


def test_setting_has_the_same_value_in_each_source(tmp_path: Path) -> None:
    """A variable, a key of the agent's table, and a field of the author's settings."""
    assert {one.name for one in fields(ModelSettings)} == {*WRITTEN, "api_key"}
    values: dict[str, Any] = {name: value for name, (_, _, value) in WRITTEN.items()}
    (tmp_path / "key").write_text(f"{KEY}\n")
    own = ModelSettings(**values, api_key=SecretStr(KEY))
    env = {f"IOA_LLM_{name.upper()}": written for name, (written, _, _) in WRITTEN.items()} | {"IOA_LLM_API_KEY": KEY}
    keys = "\n".join(f"{name} = {written}" for name, (_, written, _) in WRITTEN.items())
    assert _read({}, own) == _read(env) == own
    assert _read(_file(tmp_path, f'[writer]\napi_key_file = "key"\n{keys}')) == own
    assert _read(_file(tmp_path, f'[writer]\napi_key_env = "SECRET"\n{keys}') | {"SECRET": KEY}) == own


def test_later_source_overrides_earlier_ones(tmp_path: Path) -> None:
    """Defaults, author, environment, the agent's table; each overrides single settings."""
    own = ModelSettings(URL, "own", max_answer=1_001, context=1_001, timeout=timedelta(seconds=1))
    file = _file(tmp_path, "[writer]\ntimeout = 3\n[other]\ncontext = 9999")
    settings = _read(file | {"IOA_LLM_CONTEXT": "1002", "IOA_LLM_TIMEOUT": "2", "OPENAI_MODEL": "usual"}, own)
    assert (settings.model, settings.max_answer, settings.context, settings.timeout) == ("own", 1_001, 1_002, timedelta(seconds=3))
    assert settings.patience == timedelta(minutes=10)


@pytest.mark.parametrize(
    ("env", "url", "model", "key"),
    [
        ({"IOA_LLM_BASE_URL": URL + "/", "IOA_LLM_MODEL": "m", "IOA_LLM_API_KEY": "k"}, URL, "m", "k"),
        ({"OPENAI_MODEL": "m", "OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "m", "k"),
        ({"OPENAI_MODEL": "m", "OPENAI_BASE_URL": URL}, URL, "m", None),
        ({"IOA_LLM_BASE_URL": URL, "IOA_LLM_MODEL": "m", "OPENAI_API_KEY": "k"}, URL, "m", None),
    ],
)
def test_environment_has_own_names_before_usual_ones(env: dict[str, str], url: str, model: str, key: str | None) -> None:
    """A usual key is not sent to another address."""
    assert ModelSettings.from_environment(env) == ModelSettings(url, model, SecretStr(key) if key else None)


def test_key_is_not_used_with_the_address_of_another_source(tmp_path: Path) -> None:
    """An address has the key of its own source, or none."""
    (tmp_path / "key").write_text(KEY)
    own = ModelSettings(URL, "m", SecretStr(KEY))
    keyed = {"IOA_LLM_BASE_URL": URL, "IOA_LLM_MODEL": "m", "IOA_LLM_API_KEY": KEY}
    cases: list[tuple[str, dict[str, str], ModelSettings | None]] = [
        (f'[writer]\nbase_url = "{OTHER}"', keyed, None),
        (f'[writer]\nbase_url = "{OTHER}"', {}, own),
        ("", {"IOA_LLM_API_KEY": KEY}, ModelSettings(OTHER, "m")),
        ("", {"IOA_LLM_MODEL": "m", "OPENAI_BASE_URL": OTHER}, own),
        ("", {"IOA_LLM_BASE_URL": OTHER}, own),
        (f"[writer]\nbase_url = '{OTHER}'\nmodel = 'm'", {"OPENAI_API_KEY": KEY}, None),
    ]
    for text, env, model in cases:
        settings = _read(_file(tmp_path, text) | env, model)
        assert (settings.base_url, settings.api_key) == (OTHER, None)
    assert _read(_file(tmp_path, "[writer]\nmodel = 'n'") | keyed).api_key == SecretStr(KEY)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[writer]\ntemprature = 1", "[writer] temprature: "),
        ("writer = 'm'", "[writer] is not a table"),
        ("[writer]\nextra = '['", "[writer] extra: it is not JSON"),
        (f"[writer]\napi_key = '{KEY}'", "[writer] api_key: keys are not allowed in the file"),
        (f"[writer]\ncontext = '{KEY}'", "[writer] context: "),
        ("[writer]\napi_key_file = 'nowhere'", "[writer]: the key cannot be read: FileNotFoundError"),
        ("[writer]\napi_key_env = 'NOWHERE'", "[writer]: the key cannot be read: KeyError: 'NOWHERE'"),
        ("[writer", "cannot be read"),
    ],
)
def test_error_names_the_file_with_table_and_key(tmp_path: Path, text: str, told: str) -> None:
    """No error, and no context of an error, contains a key."""
    env = _file(tmp_path, text)
    with pytest.raises(InvalidInputError) as caught:
        model_of(env, _agent())
    assert str(caught.value).startswith(f"IOA_LLM_CONFIG: {env['IOA_LLM_CONFIG']}") and told in str(caught.value)
    assert KEY not in f"{caught.value!r} {caught.value.__context__} {caught.value.__cause__}"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("IOA_LLM_BASE_URL", "localhost:8080"),
        ("IOA_LLM_BASE_URL", "ftp://x"),
        ("IOA_LLM_CONTEXT", "many"),
        ("IOA_LLM_MAX_ANSWER", "0"),
        ("IOA_LLM_TIMEOUT", "-1"),
        ("IOA_LLM_PRICES", "1,2,3,4"),
        ("IOA_LLM_PRICES", "1,nan"),
        ("IOA_LLM_EXTRA", "{"),
    ],
)
def test_error_names_the_variable(variable: str, value: str) -> None:
    """And contains no key."""
    env = {"IOA_LLM_MODEL": "m", "IOA_LLM_API_KEY": KEY, variable: value}
    with pytest.raises(InvalidInputError) as caught:
        ModelSettings.from_environment(env)
    assert (str(caught.value).startswith(f"{variable}: "), KEY in f"{caught.value!r} {caught.value.__context__}") == (True, False)


@pytest.mark.parametrize("env", [{}, {"OPENAI_API_KEY": "k"}, {"OPENAI_BASE_URL": "of another program", "OPENAI_API_KEY": "k"}])
def test_environment_without_a_model_has_no_settings(env: dict[str, str]) -> None:
    """Variables of other programs start no model; an own address without a model is an error."""
    assert ModelSettings.from_environment(env) is None
    with pytest.raises(InvalidInputError, match="no model is named"):
        ModelSettings.from_environment({"IOA_LLM_BASE_URL": URL, **env})


def test_settings_do_not_show_their_key(tmp_path: Path) -> None:
    """Also if another setting is invalid."""
    with pytest.raises(ValidationError, match="context") as caught:
        ModelSettings(URL, "m", SecretStr(KEY), context=9, extra={"key": KEY})
    with pytest.raises(InvalidInputError, match=r"cannot be read: .*No such file"):
        model_of({"IOA_LLM_CONFIG": str(tmp_path / "nowhere.toml")})
    assert KEY not in f"{ModelSettings(URL, 'm', SecretStr(KEY))} {caught.value}"


async def test_agents_with_the_same_model_have_one_client_together(tmp_path: Path) -> None:
    """Of each distinct model there is one; an agent for which the file names none goes by rules."""
    env = _file(tmp_path, "[a]\nmodel = 'large'\n[b]\nmodel = 'large'\n[c]\nmodel = 'small'")
    agents = [Agent(name, "Works") for name in "abcd"]
    async with open_minds(agents, env) as [a, b, c, d]:
        assert (a.chat is b.chat, a.chat is c.chat, type(d.brain)) == (True, False, RuleBrain)
    assert models_named(env)
    with pytest.raises(InvalidInputError, match="IOA_LLM_MODEL"):
        async with open_minds([ModelAgent("d", "Writes", instructions="Be kind.")], env):
            pass
