"""Pages as pictures, with the places of a passage on them."""
