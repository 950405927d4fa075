"""List the benchmarks, or run one or all of them; options are passed on.

python -m bench
python -m bench sql_tail --quick
python -m bench all --json
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def benchmarks() -> dict[str, str]:
    """The first line of each one's docstring by name. A benchmark is a script here with the shared options."""
    texts = {
        path.stem: path.read_text("utf-8") for path in sorted(HERE.glob("*.py")) if path.stem != "__main__"
    }
    return {
        name: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        for name, text in texts.items()
        if "cli.parser(__doc__)" in text
    }


def main() -> int:
    known, arguments = benchmarks(), sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        wide = max(map(len, known))
        print("\n".join(f"  {name:<{wide}}  {line}" for name, line in known.items()))
        return 0
    chosen = list(known) if arguments[0] == "all" else arguments[:1]
    if chosen[0] not in known:
        print(f"no benchmark {chosen[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    # Each in a process of its own, as on the command line.
    runs = [subprocess.run([sys.executable, HERE / f"{name}.py", *arguments[1:]]) for name in chosen]
    return max(run.returncode for run in runs)


if __name__ == "__main__":
    sys.exit(main())
