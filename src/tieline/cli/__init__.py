"""The command line: verbs in modules that are imported when the verb is used, and what these share."""
