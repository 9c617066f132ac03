//! What an engine says of the room of a target.

/// How much of a target is free, and who is at work or waits there. Fields are empty where nobody has said it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The engine's own word for whether jobs begin there.
    pub state: String,
    /// Nodes with nothing on them.
    pub idle: Option<u32>,
    /// Nodes with something on them, and with room.
    pub mixed: Option<u32>,
    /// Nodes on which nothing can begin.
    pub down: Option<u32>,
    /// CPUs that are free.
    pub free_cpus: Option<u64>,
    /// GPUs that are free.
    pub free_gpus: Option<u64>,
    /// Jobs of everybody that run.
    pub running: Option<u32>,
    /// Jobs of everybody that wait.
    pub waiting: Option<u32>,
    /// Jobs of whoever asks that run.
    pub my_running: Option<u32>,
    /// Jobs of whoever asks that wait.
    pub my_waiting: Option<u32>,
    /// What it allows, in words: `24 h at most`.
    pub limits: Vec<String>,
}

impl Room {
    /// All but the state, for people: `3 idle, 1 mixed; 24 CPUs, 2 GPUs free; 4 (1 mine) running`.
    pub fn in_words(&self) -> String {
        let some = |parts: &[(Option<u64>, &str)]| {
            let parts = parts.iter().filter_map(|(n, what)| Some(format!("{} {what}", (*n)?)));
            parts.collect::<Vec<_>>().join(", ")
        };
        let jobs = |all: Option<u32>, mine: Option<u32>, what: &str| {
            let mine = mine.map(|mine| format!(" ({mine} mine)")).unwrap_or_default();
            all.map(|all| format!("{all}{mine} {what}")).unwrap_or_default()
        };
        let free = some(&[(self.free_cpus, "CPUs"), (self.free_gpus, "GPUs")]);
        let nodes = [(self.idle, "idle"), (self.mixed, "mixed"), (self.down, "down")];
        let parts = [
            some(&nodes.map(|(n, what)| (n.map(u64::from), what))),
            if free.is_empty() { free } else { format!("{free} free") },
            jobs(self.running, self.my_running, "running"),
            jobs(self.waiting, self.my_waiting, "waiting"),
            self.limits.join(", "),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}
