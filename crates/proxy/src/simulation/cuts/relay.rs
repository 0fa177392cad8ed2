//! Stands between a session and the server, and cuts their connection at a byte that it is given.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::rc::Rc;

use remora_net::Stream;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    ToRemora,
}

/// What went over a connection.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) to_server: Vec<u8>,
    pub(super) to_remora: Vec<u8>,
    pub(super) was_cut: bool,
}

/// Carries bytes both ways until either side ends or the cut has come, after so many bytes.
pub(super) async fn carry(
    remora: Stream,
    server: Stream,
    cut: Option<(Way, usize)>,
    traffic: Rc<RefCell<Traffic>>,
) {
    tokio::join!(
        carry_one_way(Way::ToServer, &remora, &server, cut, &traffic),
        carry_one_way(Way::ToRemora, &server, &remora, cut, &traffic),
    );
}

async fn carry_one_way(
    way: Way,
    from: &Stream,
    to: &Stream,
    cut: Option<(Way, usize)>,
    traffic: &RefCell<Traffic>,
) {
    let limit = match cut {
        Some((cut_way, bytes)) if cut_way == way => bytes,
        _ => usize::MAX,
    };
    let mut carried = 0;
    let mut chunk = [0; 256];
    while carried < limit {
        let room = chunk.len().min(limit - carried);
        let count = match from.try_read(&mut chunk[..room]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if from.readable().await.is_err() {
                    break;
                }
                continue;
            }
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        carried += count;
        {
            let mut traffic = traffic.borrow_mut();
            match way {
                Way::ToServer => traffic.to_server.extend_from_slice(&chunk[..count]),
                Way::ToRemora => traffic.to_remora.extend_from_slice(&chunk[..count]),
            }
        }
        if to.write_all(&chunk[..count]).await.is_err() {
            break;
        }
    }
    // Errors say that a side has ended already.
    if carried >= limit {
        traffic.borrow_mut().was_cut = true;
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    } else {
        let _ = to.shutdown(Shutdown::Write);
    }
}
