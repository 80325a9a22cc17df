"""Which file decides, by the rule of each directory and tool."""
