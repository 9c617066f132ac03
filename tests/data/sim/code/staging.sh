# Stands for the script of a user; in the simulation nothing runs it.
