"""Attributes of other people's modules put in place of others for a while, and put back."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Swaps:
    """Remembers what stood where, so that `undo` leaves everything as it was found."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []
        self._items: list[tuple[dict[Any, Any], Any, Any]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Let `owner.name` be `value`; what the owner only inherited is looked up there again later."""
        self._before.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def put_item(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Let `table[key]` be `value`."""
        self._items.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def undo(self) -> None:
        """Put everything back, the last change first."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        while self._items:
            table, key, value = self._items.pop()
            if value is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = value
