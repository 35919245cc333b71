"""Clients that act by a timetable, what they say, and thin links between them: shared by all that measures delays."""
