"""Lessons for classes: exports for students, teachers and nbgrader, and checks of submitted notebooks.

``lessons`` reads the lessons with their exercises and the teachers' answers. ``plain`` and ``nbgrader`` write them for
a class. ``submissions`` checks a folder of submitted notebooks: ``student`` finds the code of the answers, and
``judge`` executes it in other processes. The command ``workbench lessons`` calls all of them.
"""
