"""Start of the page, for a laptop, a container and a Space alike: `python app.py`.

Settings come from `SPECRAG_*` variables; see specrag/config.py.
"""

import sys

from specrag.config import load_settings
from specrag.errors import SpecragError
from specrag.ui.app import serve


def main() -> None:
    """Serve the page, or say in one sentence why not."""
    try:
        serve(load_settings())
    except SpecragError as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
