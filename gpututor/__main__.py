"""`python -m gpututor`, for where the console script is not on the path."""

from __future__ import annotations

from gpututor.cli import main

main()
