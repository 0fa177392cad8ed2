//! The MySQL client/server protocol: packets, handshake, commands, responses. No I/O.
