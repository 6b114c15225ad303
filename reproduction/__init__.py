"""The paper's experiments: configs are read, runs are executed and kept, and a report compares them with the paper.

``python -m reproduction`` runs it from a checkout; it is not part of the installed package.
"""
