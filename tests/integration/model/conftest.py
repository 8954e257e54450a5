"""A real model server for the tests of this folder; without its two packages they are skipped and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.model.llama_server import running_llama_server, weights


@pytest.fixture(scope="session")
def llama_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the small model for the whole session and give its base URL."""
    if weights() is None:
        pytest.skip("needs a model: make test-all SUITE=model")
    with running_llama_server(tmp_path_factory.mktemp("llama") / "server.log") as url:
        yield url
