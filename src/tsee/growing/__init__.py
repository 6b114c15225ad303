"""New rows on an old map: which are of a new kind, where they find room, and what the network is taught again."""
