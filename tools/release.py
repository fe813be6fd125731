"""Set the version everywhere and close the changelog's section: `make release VERSION=0.2.0`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def release(version: str, root: Path = ROOT) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        raise SystemExit(f"{version!r} is no version such as 0.2.0 or 0.2.0rc1.")
    for name, pattern, line in (
            ("src/reclust/utils/version.py", r'^__version__ = ".*"$', f'__version__ = "{version}"'),
            ("CITATION.cff", r"^version: .*$", f"version: {version}"),
            ("CHANGELOG.md", r"^## Unreleased\n+", f"## Unreleased\n\n## {version}\n")):
        text, count = re.subn(pattern, line, (root / name).read_text(), count=1, flags=re.MULTILINE)
        if not count:
            raise SystemExit(f"{name} has no line {pattern}.")
        (root / name).write_text(text)
    print(f"git commit -am 'Version {version}' && git tag v{version} && git push --follow-tags origin main v{version}")


if __name__ == "__main__":
    release(*sys.argv[1:])
