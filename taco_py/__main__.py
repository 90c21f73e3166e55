"""`python -m taco_py`."""

import sys

from taco_py.cli import main

sys.exit(main())
