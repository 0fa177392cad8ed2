//! A connection without a socket, for the simulation of sessions and its fuzzer. Both ends are in
//! one thread, and what one writes the other can read at once.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// One end of a connection.
#[derive(Debug)]
pub(super) struct MemorySocket {
    incoming: Rc<RefCell<Pipe>>,
    outgoing: Rc<RefCell<Pipe>>,
}

/// One direction.
#[derive(Debug)]
struct Pipe {
    bytes: VecDeque<u8>,
    /// How many bytes it holds before the writer must wait.
    bytes_max: usize,
    /// Nothing more will be written.
    is_ended: bool,
    /// Nobody will read any more.
    is_abandoned: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    fn new(bytes_max: usize) -> Rc<RefCell<Pipe>> {
        Rc::new(RefCell::new(Pipe {
            bytes: VecDeque::new(),
            bytes_max,
            is_ended: false,
            is_abandoned: false,
            reader: None,
            writer: None,
        }))
    }

    fn end(&mut self) {
        self.is_ended = true;
        self.wake();
    }

    fn abandon(&mut self) {
        self.is_abandoned = true;
        self.bytes.clear();
        self.wake();
    }

    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()] {
            waker.into_iter().for_each(Waker::wake);
        }
    }

    fn room(&self) -> usize {
        self.bytes_max.saturating_sub(self.bytes.len())
    }
}

impl MemorySocket {
    /// Both ends of a connection that holds so many bytes in each direction.
    pub(super) fn pair(bytes_max: usize) -> (MemorySocket, MemorySocket) {
        let (there, back) = (Pipe::new(bytes_max), Pipe::new(bytes_max));
        let near = MemorySocket {
            incoming: Rc::clone(&back),
            outgoing: Rc::clone(&there),
        };
        let far = MemorySocket {
            incoming: there,
            outgoing: back,
        };
        (near, far)
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut pipe = self.incoming.borrow_mut();
        let count = pipe.bytes.len().min(buffer.len());
        if count == 0 && !pipe.is_ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (first, second) = pipe.bytes.as_slices();
        let of_first = count.min(first.len());
        buffer[..of_first].copy_from_slice(&first[..of_first]);
        buffer[of_first..count].copy_from_slice(&second[..count - of_first]);
        pipe.bytes.drain(..count);
        if let Some(waker) = pipe.writer.take() {
            waker.wake();
        }
        Ok(count)
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut pipe = self.outgoing.borrow_mut();
        if pipe.is_ended || pipe.is_abandoned {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = pipe.room().min(bytes.len());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        pipe.bytes.extend(&bytes[..count]);
        if let Some(waker) = pipe.reader.take() {
            waker.wake();
        }
        Ok(count)
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.incoming.borrow_mut();
        if pipe.is_ended || !pipe.bytes.is_empty() {
            return Poll::Ready(Ok(()));
        }
        pipe.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.outgoing.borrow_mut();
        if pipe.is_ended || pipe.is_abandoned || pipe.room() > 0 {
            return Poll::Ready(Ok(()));
        }
        pipe.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        if how != Shutdown::Write {
            self.incoming.borrow_mut().end();
        }
        if how != Shutdown::Read {
            self.outgoing.borrow_mut().end();
        }
    }
}

impl Drop for MemorySocket {
    fn drop(&mut self) {
        self.outgoing.borrow_mut().end();
        self.incoming.borrow_mut().abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(socket: &MemorySocket) -> Result<Vec<u8>, io::ErrorKind> {
        let mut buffer = [0; 16];
        let count = socket.try_read(&mut buffer).map_err(|error| error.kind())?;
        Ok(buffer[..count].to_vec())
    }

    fn write(socket: &MemorySocket, bytes: &[u8]) -> Result<usize, io::ErrorKind> {
        socket.try_write(bytes).map_err(|error| error.kind())
    }

    #[test]
    fn it_holds_what_it_has_room_for() {
        let (near, far) = MemorySocket::pair(4);
        assert_eq!(read(&far), Err(io::ErrorKind::WouldBlock));
        assert_eq!(write(&near, b"abcdef"), Ok(4));
        assert_eq!(write(&near, b"ef"), Err(io::ErrorKind::WouldBlock));
        assert_eq!(read(&far), Ok(b"abcd".to_vec()));
        assert_eq!(write(&near, b"ef"), Ok(2));
        assert_eq!(read(&far), Ok(b"ef".to_vec()));
    }

    #[test]
    fn what_was_written_before_the_end_is_still_read() {
        let (near, far) = MemorySocket::pair(4);
        assert_eq!(write(&near, b"ab"), Ok(2));
        drop(near);
        assert_eq!(write(&far, b"c"), Err(io::ErrorKind::BrokenPipe));
        assert_eq!(read(&far), Ok(b"ab".to_vec()));
        assert_eq!(read(&far), Ok(Vec::new()));
    }

    #[test]
    fn each_direction_can_be_ended_alone() {
        let (near, far) = MemorySocket::pair(4);
        near.shutdown(Shutdown::Write);
        assert_eq!(read(&far), Ok(Vec::new()));
        assert_eq!(write(&far, b"ab"), Ok(2));
        assert_eq!(read(&near), Ok(b"ab".to_vec()));
    }

    #[test]
    fn both_sides_are_woken() {
        let (near, far) = MemorySocket::pair(1);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(far.poll_read_ready(&mut cx).is_pending());
        assert!(near.poll_write_ready(&mut cx).is_ready());
        assert_eq!(write(&near, b"a"), Ok(1));
        assert!(far.poll_read_ready(&mut cx).is_ready());
        assert!(near.poll_write_ready(&mut cx).is_pending());
        assert_eq!(read(&far), Ok(b"a".to_vec()));
        assert!(near.poll_write_ready(&mut cx).is_ready());
        assert!(far.poll_read_ready(&mut cx).is_pending());
        near.shutdown(Shutdown::Both);
        assert!(far.poll_read_ready(&mut cx).is_ready());
    }
}
