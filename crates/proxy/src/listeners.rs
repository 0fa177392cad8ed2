//! The sockets that clients connect to: bound here, or passed on by the process before.

use std::io;

use remora_net::{Bound, Endpoint, Keepalive};

use crate::config::ListenOptions;
use crate::service_manager::{self, ServiceManager};

/// A listening address can't be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "listen.addresses: got {endpoint}, which can't be listened on ({source}); accepts a free \
     address of this host"
)]
pub struct ListenError {
    /// The address.
    pub endpoint: Endpoint,
    /// What the system says.
    pub source: io::Error,
}

/// Binds every address of the options.
pub(crate) fn bind(listen: &ListenOptions) -> Result<Vec<Bound>, ListenError> {
    bind_with(listen, &mut Vec::new(), |_| {})
}

/// The same, but takes the sockets that the service manager has passed for these addresses, and has
/// it keep the others for the next process.
pub(crate) fn bind_or_take(
    listen: &ListenOptions,
    manager: ServiceManager,
) -> Result<Vec<Bound>, ListenError> {
    let mut passed = service_manager::passed_sockets();
    let bound = bind_with(listen, &mut passed, |bound| manager.keep(bound))?;
    for unwanted in &passed {
        let address = unwanted
            .endpoint()
            .map_or_else(|error| error.to_string(), |endpoint| endpoint.to_string());
        tracing::warn!(
            "the service manager passed a socket that listens on {address}, which \
             listen.addresses doesn't have: it is closed"
        );
        manager.forget(unwanted);
    }
    Ok(bound)
}

/// `keep` gets each socket that was bound here.
fn bind_with(
    listen: &ListenOptions,
    passed: &mut Vec<Bound>,
    mut keep: impl FnMut(&mut Bound),
) -> Result<Vec<Bound>, ListenError> {
    let keepalive = Keepalive::after_ms(listen.keepalive_ms);
    let mut listeners = Vec::new();
    for endpoint in &listen.addresses {
        let failed = |source| ListenError {
            endpoint: endpoint.clone(),
            source,
        };
        let place = passed.iter().position(|bound| bound.is_at(endpoint));
        listeners.push(if let Some(place) = place {
            let bound = passed.swap_remove(place);
            // The options may have changed since it was bound.
            bound.listen(listen.backlog, keepalive).map_err(failed)?;
            bound
        } else {
            let mut bound = Bound::bind(endpoint, listen.backlog, keepalive).map_err(failed)?;
            keep(&mut bound);
            bound
        });
    }
    Ok(listeners)
}
