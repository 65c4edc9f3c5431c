"""Look at what is to be run before a process is started for it."""

from __future__ import annotations

import ast
import tokenize
from pathlib import Path

from gpututor.errors import GpututorError


class NoScript(GpututorError, ValueError):
    """What was named is no Python script that could be run."""


def check(target: str) -> None:
    """Refuse what can't be a script. A syntax error in a file that ends in .py is left to Python to show.

    Raises:
        NoScript: there is no such file, or it holds no Python.
    """
    path = Path(target)
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            raise NoScript(f"{target} is a folder without a __main__.py; name the script in it that is to be run")
        return
    if not path.exists():
        raise NoScript(f"{target} is not there (looked in {path.absolute().parent}){_near(path)}")
    try:
        with tokenize.open(target) as file:
            source = file.read()
        ast.parse(source, target)
    except OSError as error:
        raise NoScript(f"{target} can't be read ({error.strerror}); check the name and its permissions") from error
    except SyntaxError as error:
        if path.suffix == ".py" and "\0" not in str(error):
            return
        raise NoScript(_no_python(target, f"line {error.lineno}: {error.msg}")) from error
    except (UnicodeDecodeError, ValueError) as error:
        raise NoScript(_no_python(target, "it holds bytes that are no text")) from error


def _no_python(target: str, why: str) -> str:
    return f"{target} is no Python script ({why}); name the .py file itself, with its arguments after it"


def _near(path: Path) -> str:
    from difflib import get_close_matches

    folder = path.parent
    others = [p.name for p in folder.glob("*.py")] if folder.is_dir() else []
    close = get_close_matches(path.name, others, n=2)
    return f". Did you mean {' or '.join(str(folder / name) for name in close)}?" if close else ""
