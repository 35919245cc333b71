"""What is computed from messages: functions of data frames."""
