"""Analysis: questions about a finished run, answered from its trace or by running its scenario again."""
