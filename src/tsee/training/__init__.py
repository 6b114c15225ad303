"""A fit: its plan, the rows it reads, the loop, the stages, and the checkpoint that can resume it."""
