//! The process's limit on open files, which bounds how many connections it can hold.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that Remora has open besides connections: listeners, the follower's connections, logs.
const OTHERS: u64 = 64;

/// Raises the limit on open files, as far as the system lets the process, to what so many
/// connections need. If that isn't far enough, gives a line that says so.
pub fn make_room_for(connections_max: usize) -> Option<String> {
    // One for the client and one for the server.
    let needed = 2 * connections_max as u64 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return None;
    }
    let reachable = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    let raised = Rlimit {
        current: Some(reachable),
        ..limit
    };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => reachable,
        Err(_) => limit.current.unwrap_or(reachable),
    };
    (allowed < needed).then(|| {
        format!(
            "workers.connections_max is {connections_max}, which needs {needed} open files, but the \
             process may have {allowed}: raise `ulimit -Hn` (systemd: LimitNOFILE=)"
        )
    })
}
