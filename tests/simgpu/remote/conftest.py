"""One server of cards for all tests here."""

from __future__ import annotations

import os

import pytest

if not hasattr(os, "fork"):
    pytest.skip("a card in another process needs fork", allow_module_level=True)


@pytest.fixture(scope="session")
def cards():
    from gpututor.lab.cards_pool import Cards

    with Cards() as server:
        yield server
