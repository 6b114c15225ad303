"""The paper's experiments: read from configs, run, reported. Only the command imports this."""
