"""`python -m specrag`."""

from specrag.cli import main

main()
