//! Real programs from the package registry.

mod programs_by_name;
