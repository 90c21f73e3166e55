"""How points of a space are chosen for measuring, a file each; the table is in `searches`."""
