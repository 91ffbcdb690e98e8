"""The commands of the command line, one module per group; each imports what it needs when it runs."""
