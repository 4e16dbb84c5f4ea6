"""`python -m backsight` is the `backsight` command."""

from backsight.surfaces.main import main

main()
