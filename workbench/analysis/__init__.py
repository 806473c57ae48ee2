"""Analysis: questions about a finished run, answered from its trace or by replaying its scenario."""
