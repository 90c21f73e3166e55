"""`python -m taco_py`."""

import sys

from taco_py.tool.cli import main

sys.exit(main())
