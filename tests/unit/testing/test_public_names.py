"""Public names: few, importable, and with stable parameters."""

from __future__ import annotations

import pytest

import ioa
import ioa.adopt
import ioa.react
import ioa.testing
import ioa_testkit

MODULES = (ioa, ioa.adopt, ioa.testing, ioa_testkit)
MAX_NAMES = 65


def test_public_names_are_importable_and_few() -> None:
    """An author can overlook them."""
    for module in MODULES:
        assert all(getattr(module, name) is not None for name in module.__all__)
        assert dir(module) == sorted(module.__all__)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = module.nothing
    assert len({name for module in (*MODULES, ioa.react) for name in module.__all__}) <= MAX_NAMES
