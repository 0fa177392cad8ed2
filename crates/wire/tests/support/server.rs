//! A private MariaDB, from Debian's `mariadb-server`.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to start. It is only ever reached by a failure.
const START_MAX: Duration = Duration::from_mins(2);

/// The password of `native@127.0.0.1`, who may do everything.
pub const PASSWORD: &str = "sécret, with ' and \\";

/// A server that ends, with its data, when the last test that uses it ends.
#[derive(Debug)]
pub struct Server {
    process: Child,
    pub port: u16,
    /// Removed when the server has ended: fields are dropped after [`Drop::drop`].
    dir: TempDir,
}

impl Server {
    /// The server of this test file: started by whoever needs it first.
    pub fn shared() -> Arc<Server> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Server::start());
        *shared = Arc::downgrade(&server);
        server
    }

    fn start() -> Server {
        let dir = tempfile::Builder::new().prefix("wire-").tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let installed = Command::new("mariadb-install-db")
            .arg("--no-defaults")
            .arg(format!("--datadir={}", path("data")))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .output()
            .expect("this test needs mariadb-install-db (Debian: mariadb-server)");
        assert!(installed.status.success(), "{installed:?}");
        let escaped = PASSWORD.replace('\\', "\\\\").replace('\'', "''");
        std::fs::write(
            dir.path().join("init.sql"),
            format!(
                "CREATE DATABASE shop;\n\
                 CREATE USER native@'127.0.0.1' IDENTIFIED BY '{escaped}';\n\
                 GRANT ALL ON *.* TO native@'127.0.0.1';\n"
            ),
        )
        .unwrap();
        let port = free_port();
        let log = File::create(path("log")).unwrap();
        let process = Command::new("mariadbd")
            .arg("--no-defaults")
            .arg(format!("--datadir={}", path("data")))
            .arg(format!("--socket={}", path("socket")))
            .arg(format!("--init-file={}", path("init.sql")))
            .arg(format!("--port={port}"))
            // Meanwhile a client's connection may have been given it.
            .arg(format!("--port-open-timeout={}", START_MAX.as_secs()))
            .args(["--bind-address=127.0.0.1", "--user=root"])
            .args(["--character-set-server=utf8mb4", "--local-infile=1"])
            .args(["--max-allowed-packet=64M", "--skip-name-resolve"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("this test needs mariadbd (Debian: mariadb-server)");
        let mut server = Server { process, port, dir };
        server.wait_until_it_answers();
        server
    }

    fn wait_until_it_answers(&mut self) {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Some(status) = self.process.try_wait().unwrap() {
                let log = std::fs::read_to_string(self.dir.path().join("log"));
                panic!("mariadbd ended with {status}: {}", log.unwrap_or_default());
            }
            assert!(start.elapsed() < START_MAX, "mariadbd does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already, or it goes now; there is nobody to tell.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port of 127.0.0.1 that nobody listened on a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}
