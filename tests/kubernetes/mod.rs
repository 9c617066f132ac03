//! The simulated Kubernetes cluster: every recorded exchange with a real server, the real `kubectl`, faults, and what
//! is left behind.

mod client;
mod faults;
mod kubectl;
mod lists;
mod logs;
mod pods;
mod recorded;
