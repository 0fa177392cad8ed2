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
    let is_wanted = |bound: &Bound| listen.addresses.iter().any(|address| bound.is_at(address));
    let (mut passed, unwanted): (Vec<_>, Vec<_>) = service_manager::passed_sockets()
        .into_iter()
        .partition(is_wanted);
    for bound in &unwanted {
        let address = bound
            .endpoint()
            .map_or_else(|error| error.to_string(), |endpoint| endpoint.to_string());
        tracing::warn!(
            "the service manager passed a socket for {address}, which isn't in listen.addresses: \
             Remora doesn't serve it"
        );
    }
    // First: one of the new addresses may be another name for the same port.
    manager.forget(unwanted);
    bind_with(listen, &mut passed, |bound| manager.keep(bound))
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
