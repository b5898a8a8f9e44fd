"""A Python process of its own, which finds the packages where this one does."""

import sys

# Site is off where an instrumented build is tested in place of the installed one.
PYTHON = [sys.executable, *(["-S"] if sys.flags.no_site else [])]
