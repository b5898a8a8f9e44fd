"""Command line: ``python -m vflnn run config.toml`` and ``python -m vflnn list``."""

from vflnn.runs.cli import main

raise SystemExit(main())
