"""What the lessons run in the lab: functions `f(progress, …)` that hand back data and files."""
