//! A client's connection, and when a shutdown may end it.

use std::cell::Cell;
use std::net::Shutdown;
use std::ops::Deref;

use remora_net::Stream;

/// A client's connection. A shutdown ends it between statements, outside a transaction.
pub(crate) struct ClientConnection {
    stream: Stream,
    reading: Cell<Reading>,
}

/// What the session does with what its client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// It waits, and nothing is cut off if nothing comes: a login, or the next statement outside a
    /// transaction.
    Idle,
    /// It handles a statement, or waits for the next one of an open transaction.
    Busy,
    /// Nothing more is read: Remora is stopping.
    Ended,
}

impl ClientConnection {
    /// Of a client that isn't logged in.
    pub(crate) fn new(stream: Stream) -> ClientConnection {
        ClientConnection {
            stream,
            reading: Cell::new(Reading::Idle),
        }
    }

    /// The session is about to wait for the client's next bytes. `is_busy`: in a transaction, or in
    /// the middle of a message. Gives whether it may wait.
    #[inline]
    pub(super) fn awaits_next(&self, is_busy: bool, is_stopping: bool) -> bool {
        if self.reading.get() == Reading::Ended {
            return false;
        }
        self.reading.set(if is_busy {
            Reading::Busy
        } else {
            Reading::Idle
        });
        if is_stopping {
            self.stop_reading();
        }
        self.reading.get() != Reading::Ended
    }

    /// Something has come. Gives whether it may be read.
    #[inline]
    pub(super) fn has_sent(&self) -> bool {
        if self.reading.get() == Reading::Ended {
            return false;
        }
        self.reading.set(Reading::Busy);
        true
    }

    /// Shuts down reading if the session is idle, which then sees the end of the file. A running
    /// statement or an open transaction goes on.
    pub(super) fn stop_reading(&self) {
        if self.reading.get() == Reading::Idle {
            self.reading.set(Reading::Ended);
            // A socket that is closed already needs nothing.
            let _ = self.stream.shutdown(Shutdown::Read);
        }
    }

    /// Whether that was done: a client that seems to have left may still be there.
    pub(super) fn has_stopped_reading(&self) -> bool {
        self.reading.get() == Reading::Ended
    }
}

impl Deref for ClientConnection {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}
