"""`python -m fgrpo` is the command line `fgrpo`."""

import sys

from fgrpo.cli import main

sys.exit(main())
