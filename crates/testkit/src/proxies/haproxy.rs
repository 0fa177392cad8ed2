//! HAProxy in TCP mode: what any proxy costs at least.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context as _;

use crate::certificates::CertificateFiles;
use crate::process::{Process, Program};
use crate::scratch::Scratch;
use crate::{ports, programs};

const PATIENCE: Duration = crate::process::PATIENCE;

/// A running HAProxy.
#[derive(Debug)]
pub struct HaProxy {
    process: Process,
    address: SocketAddr,
    configuration: String,
    _scratch: Scratch,
}

/// As many as the lab's own tests and benchmarks open at once.
const CONNECTIONS_MAX: u32 = 2_000;

impl HaProxy {
    /// Starts one that relays to `server` with so many threads. With a certificate it speaks TLS
    /// with its clients, from the first byte on.
    pub fn start(
        server: SocketAddr,
        threads: usize,
        tls: Option<&CertificateFiles>,
    ) -> anyhow::Result<HaProxy> {
        HaProxy::start_for(server, threads, CONNECTIONS_MAX, tls)
    }

    /// The same for at most so many connections of clients.
    pub fn start_for(
        server: SocketAddr,
        threads: usize,
        connections_max: u32,
        tls: Option<&CertificateFiles>,
    ) -> anyhow::Result<HaProxy> {
        let scratch = Scratch::new()?;
        let address = ports::free()?;
        let file = scratch.join("haproxy.cfg");
        let ssl = match tls {
            None => String::new(),
            Some(files) => {
                // HAProxy takes one file with both.
                let both = scratch.join("certificate-and-key.pem");
                let read = |file| std::fs::read_to_string(file).context("can't read a certificate");
                std::fs::write(&both, read(&files.certificate)? + &read(&files.key)?)
                    .context("can't write HAProxy's certificate")?;
                format!(" ssl crt {}", both.display())
            }
        };
        let configuration = configuration(address, &ssl, server, threads, connections_max);
        std::fs::write(&file, &configuration).context("can't write HAProxy's configuration")?;
        let path = programs::find("haproxy")?;
        let program = Program::new("haproxy", path, scratch.join("log"));
        let mut process = program.arg("-db").arg("-f").arg(file).spawn()?;
        process
            .wait_until("HAProxy's port", PATIENCE, || {
                TcpStream::connect(address).ok()
            })
            .context("HAProxy did not start")?;
        Ok(HaProxy {
            process,
            address,
            configuration,
            _scratch: scratch,
        })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file that it was started with.
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

fn configuration(
    listen: SocketAddr,
    ssl: &str,
    server: SocketAddr,
    threads: usize,
    connections_max: u32,
) -> String {
    format!(
        "global\n\
        \x20   maxconn {connections_max}\n\
        \x20   nbthread {threads}\n\
        defaults\n\
        \x20   mode tcp\n\
        \x20   timeout connect 10s\n\
        \x20   timeout client 1h\n\
        \x20   timeout server 1h\n\
        listen mysql\n\
        \x20   bind {listen}{ssl}\n\
        \x20   server upstream {server}\n"
    )
}
