//! What a place is reached at over a network.
//!
//! # Design
//! A connection proves little: the host of a forwarded port accepts it long before the target
//! listens. So a server that speaks first is heard: SSH says its version (RFC 4253, 4.2).

use std::time::Duration;

use jig_model::protocol::{BoxFuture, CheckReport, HealthCheck};
use jig_model::rig_file::Network;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::console::connect;
use super::error::HostCheckError;
use super::{Found, report};

/// How long a server may take to say what it is: on a small board that has just booted it
/// draws its keys.
const BANNER: Duration = Duration::from_secs(5);

/// How much a server may say before that, such as a notice of permitted users.
const MOST_BEFORE: u64 = 8 << 10;

/// Longest version, its line end included (RFC 4253, 4.2).
const MOST_VERSION: usize = 255;

/// Returns the checks of what a place is reached at.
pub fn network(at: &Network) -> Vec<Box<dyn HealthCheck>> {
    let of = |address: &Option<String>, speaks_ssh| {
        address.clone().map(|address| Box::new(Reach { address, speaks_ssh }) as _)
    };
    of(&at.tcp, false).into_iter().chain(of(&at.ssh, true)).collect()
}

struct Reach {
    address: String,
    speaks_ssh: bool,
}

impl Reach {
    async fn look(&self) -> Found {
        let at = &self.address;
        let named = || at.clone();
        let stream = connect(at).await?;
        if !self.speaks_ssh {
            return Ok(format!("{at} accepts"));
        }
        match timeout(BANNER, version(stream)).await {
            Ok(Ok(Some(version))) => Ok(format!("{at} says {version}")),
            Ok(Ok(None)) => Err(HostCheckError::NotSsh(named())),
            Ok(Err(source)) => Err(HostCheckError::HungUp { at: named(), source }),
            Err(_) => Err(HostCheckError::Mute { at: named(), timeout: BANNER }),
        }
    }
}

impl HealthCheck for Reach {
    fn name(&self) -> String {
        if self.speaks_ssh { "network-ssh".to_owned() } else { "network-tcp".to_owned() }
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(async {
            let seen = self.look().await;
            report(self.name(), seen)
        })
    }
}

/// Reads which SSH a server speaks; nothing if it speaks something else.
async fn version(stream: TcpStream) -> std::io::Result<Option<String>> {
    let mut said = Vec::new();
    let mut stream = stream.take(MOST_BEFORE);
    let mut piece = [0; 512];
    loop {
        if let Some(version) = version_in(&said) {
            return Ok(Some(version));
        }
        let read = stream.read(&mut piece).await?;
        let Some(more) = piece.get(..read).filter(|more| !more.is_empty()) else {
            return Ok(None);
        };
        said.extend_from_slice(more);
    }
}

/// Finds the version among the lines that are whole.
fn version_in(said: &[u8]) -> Option<String> {
    let (lines, _) = said.split_at(said.iter().rposition(|&byte| byte == b'\n')?);
    let line = lines.split(|&byte| byte == b'\n').find(|line| line.starts_with(b"SSH-"))?;
    let plain = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    let text = line.iter().copied().take(MOST_VERSION).take_while(plain);
    Some(text.map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    /// Returns what is seen of a server that says this and hangs up.
    async fn said(words: Vec<u8>, speaks_ssh: bool) -> CheckReport {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Some(listener.local_addr().unwrap().to_string());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The check may have closed the connection already.
            let _ = stream.write_all(&words).await;
        });
        let at = match speaks_ssh {
            true => Network { ssh: address, tcp: None },
            false => Network { tcp: address, ssh: None },
        };
        let mut checks = network(&at);
        assert_eq!(checks.len(), 1);
        let report = checks[0].check().await;
        assert_eq!(report.check, checks[0].name());
        server.await.unwrap();
        report
    }

    #[tokio::test]
    async fn ssh_is_believed_once_it_says_its_version() {
        let seen = said(b"who may log in\r\nSSH-2.0-x\x1b[2J y\r\n".to_vec(), true).await;
        assert!(seen.ok && seen.detail.ends_with(" says SSH-2.0-x"), "{seen:?}");
        for words in [&b""[..], b"SSH-2.0-cut", b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
            let seen = said(words.to_vec(), true).await;
            assert!(!seen.ok && seen.detail.ends_with("does not speak SSH"), "{seen:?}");
        }
        assert!(!said(b"x\n".repeat(1 << 20), true).await.ok);
        let seen = said(Vec::new(), false).await;
        assert!(seen.ok && seen.detail.ends_with(" accepts"), "{seen:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_accepts_and_says_nothing_is_not_there() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = network(&Network { ssh: Some(address), tcp: None })[0].check().await;
        assert!(!seen.ok && seen.detail.ends_with("says nothing within 5 s"), "{seen:?}");
    }
}
