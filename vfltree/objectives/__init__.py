"""One module for each family of losses; `vfltree.losses` gathers them."""
