# Placeholder until targets exist.
