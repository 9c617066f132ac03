//! A disk in memory , for tests and simulations.
