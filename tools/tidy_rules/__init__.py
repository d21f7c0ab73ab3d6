"""The house rules that tools/tidy.py checks, one file per subject. Importing a file registers its rules."""
