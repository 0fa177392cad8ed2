//! The product: sockets, sessions, the follower, the catalogue, metrics.
