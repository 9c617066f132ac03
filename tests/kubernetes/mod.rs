//! Kubernetes: targets that are namespaces of a cluster; and the simulated cluster they are tested on, by every recorded
//! exchange with a real server, the real `kubectl`, faults, and what is left behind.
//!
//! slow: pods of a simulated cluster are real processes, and its clocks are the real one.

pub(crate) mod client;
mod ends;
mod faults;
mod flavors;
mod images;
mod jobfiles;
mod keys;
mod kjob;
mod kubectl;
mod lab;
mod leaving;
mod lists;
mod logs;
mod outlives;
mod played;
mod pods;
mod proof;
mod published;
mod queue;
mod readme;
mod recorded;
mod runs;
mod stage;
mod together;
mod told;
mod unheard;
mod weather;
mod wire;
