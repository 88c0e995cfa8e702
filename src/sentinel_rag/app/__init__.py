"""The only place that wires zones: builds each zone's objects and supervises their processes."""
