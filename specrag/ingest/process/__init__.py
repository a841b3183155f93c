"""Reading files in a process of its own, which a hostile file may bring down."""
