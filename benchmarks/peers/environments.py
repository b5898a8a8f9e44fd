"""An environment of its own for every peer, in .venv-peers/ beside the sources; made once, by pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1] / ".venv-peers"


@dataclass(frozen=True)
class Peer:
    """name : heading in the table; driver : file; packages : alternatives (Python wanted or None, requirements)."""

    name: str
    driver: str
    packages: tuple[tuple[str | None, tuple[str, ...]], ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


OURS = (
    Peer("ours, ifma", "ours.py", options={"backend": "ifma"}),
    Peer("ours, avx2", "ours.py", options={"backend": "avx2"}),
    Peer("ours, portable", "ours.py", options={"backend": "portable"}),
)
_GMPY2 = ((None, ("gmpy2==2.3.2",)),)
PEERS = (
    # The wheel of the newest version wants Python 3.10; an older version has one for 3.11.
    Peer("sf-heu", "peer_heu.py", (("3.10", ("sf-heu==0.6.0b0",)), ("3.11", ("sf-heu==0.5.2b0",)))),
    Peer("pypaillier", "peer_pypaillier.py", ((None, ("pypaillier==0.8.0",)),)),
    Peer("phe", "peer_phe.py", ((None, ("phe==1.5.0", "gmpy2==2.3.2")),)),
    Peer("gmpy2", "peer_gmpy2.py", _GMPY2, {"table": False}),
    Peer("gmpy2, table", "peer_gmpy2.py", _GMPY2, {"table": True}),
)


def interpreter(version: str | None) -> str | None:
    """A Python of this version: this one, on the path, or pyenv's. A shim that leads nowhere does not count."""
    if version is None or version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    candidates = [
        shutil.which(f"python{version}"),
        *Path.home().glob(f".pyenv/versions/{version}.*/bin/python"),
    ]
    for candidate in filter(None, candidates):
        answer = subprocess.run([str(candidate), "--version"], capture_output=True, text=True, check=False)
        if answer.returncode == 0 and f" {version}." in answer.stdout:
            return str(candidate)
    return None


def prepare(peer: Peer) -> tuple[str | None, str]:
    """The interpreter of the peer's environment or None, and what could not be had."""
    if not peer.packages:
        return sys.executable, ""
    reasons = []
    for version, requirements in peer.packages:
        python = interpreter(version)
        if python is None:
            reasons.append(f"{' '.join(requirements)} wants Python {version}, which was not found")
            continue
        made, reason = _environment(python, requirements)
        if made:
            return made, "; ".join(reasons)
        reasons.append(reason)
    return None, "; ".join(reasons)


def _environment(python: str, requirements: tuple[str, ...]) -> tuple[str | None, str]:
    folder = HOME / "_".join(r.replace("==", "-") for r in requirements)
    inside, done = folder / "bin" / "python", folder / ".installed"
    if done.exists():
        return str(inside), ""
    print(f"== Installing {' '.join(requirements)} in {folder.relative_to(HOME.parent)}", flush=True)
    steps = (
        [python, "-m", "venv", str(folder)],
        [str(inside), "-m", "pip", "--disable-pip-version-check", "-qq", "install", *requirements],
    )
    for step in steps:
        finished = subprocess.run(step, capture_output=True, text=True, check=False)
        if finished.returncode:
            lines = [line for line in finished.stderr.splitlines() if line.startswith("ERROR")]
            last = lines[-1] if lines else f"{step[0]} failed"
            return None, f"{' '.join(requirements)} could not be installed: {last}"
    done.touch()
    return str(inside), ""
