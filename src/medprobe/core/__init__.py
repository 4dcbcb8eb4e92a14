"""What every room builds on: parameters, the tables that cross stages, files, errors."""
