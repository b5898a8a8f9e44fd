"""All experiments, or those that are named: python benchmarks/experiments [trees] [fate] [scale]."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = [path.stem for path in sorted(HERE.glob("*.py")) if path.stem not in ("runs", "__main__")]


def main() -> int:
    wanted = sys.argv[1:] or NAMES
    unknown = sorted(set(wanted) - set(NAMES))
    if unknown:
        print(f"unknown experiments {unknown}; there are {NAMES}", file=sys.stderr)
        return 2
    return max(
        subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=False).returncode for name in wanted
    )


if __name__ == "__main__":
    sys.exit(main())
