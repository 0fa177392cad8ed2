//! The PROXY protocol: a header before everything else that says whom a connection is made for.
//! Source: "The PROXY protocol, Versions 1 & 2", haproxy.org.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Stream;

/// The PROXY protocol's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ProxyProtocol {
    /// None is sent.
    Off,
    /// Version 1, a line of text.
    V1,
    /// Version 2, binary.
    V2,
}

/// Both ends of the connection that another one is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The client's.
    pub source: SocketAddr,
    /// The one that the client connected to.
    pub destination: SocketAddr,
}

/// What begins every header of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Length of the fixed part of version 2: signature, command, family and the length of what
/// follows, bytes.
const FIXED_BYTES: usize = 16;
/// What begins every header of version 1.
const LINE_BEGIN: &[u8] = b"PROXY ";
/// The longest header of version 1 with its line break, bytes.
const LINE_BYTES_MAX: usize = 107;
/// The longest header of version 2 after its fixed part, with what may be in it beyond addresses,
/// bytes.
const BODY_BYTES_MAX: usize = 4 * 1024;
/// In version 2: the connection is the proxy's own.
const COMMAND_LOCAL: u8 = 0x20;
/// In version 2: the connection is made for another.
const COMMAND_PROXY: u8 = 0x21;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;

/// Reads a header and not a byte beyond it. `None`: it speaks for nobody else, or of no TCP
/// connection.
pub async fn receive(stream: &Stream) -> io::Result<Option<Addresses>> {
    let mut header = Vec::with_capacity(LINE_BYTES_MAX);
    // Shorter than any header.
    read_up_to(stream, &mut header, SIGNATURE.len()).await?;
    if header == SIGNATURE {
        read_up_to(stream, &mut header, FIXED_BYTES).await?;
        let length = usize::from(u16::from_be_bytes([header[14], header[15]]));
        if length > BODY_BYTES_MAX {
            return Err(not_a_header());
        }
        read_up_to(stream, &mut header, FIXED_BYTES + length).await?;
        return parse_binary(header[12], header[13], &header[FIXED_BYTES..]);
    }
    if !header.starts_with(LINE_BEGIN) {
        return Err(not_a_header());
    }
    while !header.ends_with(b"\r\n") {
        if header.len() == LINE_BYTES_MAX {
            return Err(not_a_header());
        }
        let next = header.len() + 1;
        read_up_to(stream, &mut header, next).await?;
    }
    parse_line(&header)
}

async fn read_up_to(stream: &Stream, header: &mut Vec<u8>, length: usize) -> io::Result<()> {
    while header.len() < length {
        let filled = header.len();
        header.resize(length, 0);
        let read = stream.try_read(&mut header[filled..]);
        header.truncate(filled + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.readable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn not_a_header() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the connection does not begin with the PROXY protocol",
    )
}

fn parse_line(line: &[u8]) -> io::Result<Option<Addresses>> {
    let text = std::str::from_utf8(line).map_err(|_| not_a_header())?;
    let mut words = text.trim_end_matches("\r\n").split(' ').skip(1);
    let family = words.next().unwrap_or_default();
    if family == "UNKNOWN" {
        return Ok(None);
    }
    let mut word = || words.next().ok_or_else(not_a_header);
    let (source, destination) = (word()?, word()?);
    let (source_port, destination_port) = (word()?, word()?);
    if words.next().is_some() {
        return Err(not_a_header());
    }
    let end = |address: &str, port: &str| -> io::Result<SocketAddr> {
        let address: IpAddr = address.parse().map_err(|_| not_a_header())?;
        let port = port.parse().map_err(|_| not_a_header())?;
        match (family, address) {
            ("TCP4", IpAddr::V4(_)) | ("TCP6", IpAddr::V6(_)) => Ok(SocketAddr::new(address, port)),
            _ => Err(not_a_header()),
        }
    };
    Ok(Some(Addresses {
        source: end(source, source_port)?,
        destination: end(destination, destination_port)?,
    }))
}

fn parse_binary(command: u8, family: u8, body: &[u8]) -> io::Result<Option<Addresses>> {
    match command {
        COMMAND_LOCAL => return Ok(None),
        COMMAND_PROXY => {}
        _ => return Err(not_a_header()),
    }
    let port = |at: usize| -> io::Result<u16> {
        let bytes = body.get(at..at + 2).ok_or_else(not_a_header)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    match family {
        TCP_OVER_IPV4 => {
            let (source, rest) = body.split_first_chunk::<4>().ok_or_else(not_a_header)?;
            let (destination, _) = rest.split_first_chunk::<4>().ok_or_else(not_a_header)?;
            Ok(Some(Addresses {
                source: (Ipv4Addr::from(*source), port(8)?).into(),
                destination: (Ipv4Addr::from(*destination), port(10)?).into(),
            }))
        }
        TCP_OVER_IPV6 => {
            let (source, rest) = body.split_first_chunk::<16>().ok_or_else(not_a_header)?;
            let (destination, _) = rest.split_first_chunk::<16>().ok_or_else(not_a_header)?;
            Ok(Some(Addresses {
                source: (Ipv6Addr::from(*source), port(32)?).into(),
                destination: (Ipv6Addr::from(*destination), port(34)?).into(),
            }))
        }
        _ => Ok(None),
    }
}

/// The header for a connection that is made for these, or, without addresses, for nobody else.
/// Nothing if there is to be none.
pub fn header(version: ProxyProtocol, addresses: Option<Addresses>) -> Vec<u8> {
    let addresses = addresses.map(of_one_family);
    match version {
        ProxyProtocol::Off => Vec::new(),
        ProxyProtocol::V1 => line(addresses).into_bytes(),
        ProxyProtocol::V2 => binary(addresses),
    }
}

/// A header has room for one family: if the ends differ, both are written as IPv6.
fn of_one_family(addresses: Addresses) -> Addresses {
    let Addresses {
        source,
        destination,
    } = addresses;
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    let (source, destination) = (plain(source), plain(destination));
    if source.is_ipv4() == destination.is_ipv4() {
        return Addresses {
            source,
            destination,
        };
    }
    let wide = |end: SocketAddr| match end.ip() {
        IpAddr::V4(address) => SocketAddr::new(address.to_ipv6_mapped().into(), end.port()),
        IpAddr::V6(_) => end,
    };
    Addresses {
        source: wide(source),
        destination: wide(destination),
    }
}

fn line(addresses: Option<Addresses>) -> String {
    let Some(Addresses {
        source,
        destination,
    }) = addresses
    else {
        return "PROXY UNKNOWN\r\n".to_owned();
    };
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (source.ip(), destination.ip());
    let (from_port, to_port) = (source.port(), destination.port());
    format!("PROXY {family} {from} {to} {from_port} {to_port}\r\n")
}

fn binary(addresses: Option<Addresses>) -> Vec<u8> {
    let mut body = Vec::new();
    let (command, family) = match addresses {
        None => (COMMAND_LOCAL, 0),
        Some(Addresses {
            source,
            destination,
        }) => {
            for end in [source, destination] {
                match end.ip() {
                    IpAddr::V4(address) => body.extend_from_slice(&address.octets()),
                    IpAddr::V6(address) => body.extend_from_slice(&address.octets()),
                }
            }
            for end in [source, destination] {
                body.extend_from_slice(&end.port().to_be_bytes());
            }
            let family = if source.is_ipv4() {
                TCP_OVER_IPV4
            } else {
                TCP_OVER_IPV6
            };
            (COMMAND_PROXY, family)
        }
    };
    let mut header = SIGNATURE.to_vec();
    header.extend_from_slice(&[command, family]);
    let length = u16::try_from(body.len()).unwrap_or_default();
    header.extend_from_slice(&length.to_be_bytes());
    header.extend_from_slice(&body);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(header: &[u8]) -> io::Result<Option<Addresses>> {
        if header.starts_with(&SIGNATURE) {
            parse_binary(header[12], header[13], &header[FIXED_BYTES..])
        } else {
            parse_line(header)
        }
    }

    fn addresses(source: &str, destination: &str) -> Addresses {
        Addresses {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    #[test]
    fn a_header_says_in_both_versions_whom_a_connection_is_for() {
        let of_four = addresses("203.0.113.9:51234", "192.0.2.1:3306");
        let of_six = addresses("[2001:db8::9]:51234", "[2001:db8::1]:3306");
        for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
            for given in [Some(of_four), Some(of_six), None] {
                let header = header(version, given);
                assert_eq!(parsed(&header).unwrap(), given, "{version:?}");
            }
        }
        assert_eq!(
            header(ProxyProtocol::V1, Some(of_four)),
            b"PROXY TCP4 203.0.113.9 192.0.2.1 51234 3306\r\n"
        );
        assert_eq!(header(ProxyProtocol::Off, Some(of_four)), b"");
    }

    #[test]
    fn ends_of_two_families_are_written_in_one() {
        let mixed = addresses("[2001:db8::9]:1", "192.0.2.1:2");
        let expected = addresses("[2001:db8::9]:1", "[::ffff:192.0.2.1]:2");
        for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
            let header = header(version, Some(mixed));
            assert_eq!(parsed(&header).unwrap(), Some(expected));
        }
        let mapped = addresses("[::ffff:203.0.113.9]:1", "[::ffff:192.0.2.1]:2");
        let expected = addresses("203.0.113.9:1", "192.0.2.1:2");
        let header = header(ProxyProtocol::V2, Some(mapped));
        assert_eq!(parsed(&header).unwrap(), Some(expected));
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for line in [
            "PROXY \r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n",
            "PROXY TCP4 ::1 ::2 1 2\r\n",
            "PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n",
            "PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n",
        ] {
            assert!(parse_line(line.as_bytes()).is_err(), "{line}");
        }
        assert!(parse_binary(COMMAND_PROXY, TCP_OVER_IPV4, &[0; 11]).is_err());
        assert!(parse_binary(COMMAND_PROXY, TCP_OVER_IPV6, &[0; 35]).is_err());
        assert!(parse_binary(0x31, TCP_OVER_IPV4, &[0; 12]).is_err());
        // Of a connection over a Unix socket it says nothing that a server could use.
        assert_eq!(parse_binary(COMMAND_PROXY, 0x31, &[0; 216]).unwrap(), None);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(0_u8.., 0..300), command: u8, family: u8) {
            let _ = parse_line(&bytes);
            let _ = parse_binary(command, family, &bytes);
        }
    }
}
