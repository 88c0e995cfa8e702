"""SecurityIncident: the newest version of each incident, which one a text names, its alerts, and changes to it."""
