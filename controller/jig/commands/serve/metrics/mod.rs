//! Metrics for Prometheus, by HTTP on a socket of this host.
//!
//! Owns the socket and what is answered there: `GET /metrics` and nothing else. Refuses other hosts: a
//! proxy in front of it serves them.

mod counters;
mod exposition;
mod families;

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use jig_lab::{Catalogue, LabConfig};
use jig_model::rig_file::MetricsAddress;
use jig_service::server::{SocketAccess, bind_socket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use self::counters::RigCounters;

/// Most connections at a time: a collector has one.
const MOST_CALLERS: usize = 16;

/// Time for a request to come in, and for all of a connection.
const REQUEST: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(15);

/// Longest head of a request, and most of its fields.
const MOST_HEAD: usize = 16 << 10;
const MOST_FIELDS: usize = 64;

/// For how long an answer is given again: callers cannot keep the disk busy.
const FRESH: Duration = Duration::from_secs(1);

/// Pause when the system has no descriptor left for another caller.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket of the metrics; removed when dropped.
pub(super) struct MetricsServer {
    socket: MetricsSocket,
    source: Arc<MetricsSource>,
}

enum MetricsSocket {
    Unix(UnixListener, PathBuf),
    Loopback(TcpListener),
}

impl MetricsServer {
    /// Listens. Call within a tokio runtime.
    pub(super) fn open(
        address: &MetricsAddress,
        access: SocketAccess,
        lab: LabConfig,
    ) -> io::Result<Self> {
        let socket = match address {
            MetricsAddress::Unix(path) => {
                MetricsSocket::Unix(bind_socket(path, access)?, path.clone())
            }
            MetricsAddress::Loopback(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                MetricsSocket::Loopback(TcpListener::from_std(listener)?)
            }
        };
        Ok(Self { socket, source: Arc::new(MetricsSource { lab, state: Mutex::default() }) })
    }

    /// Answers until the future is dropped; answers under way are given to their end.
    pub(super) async fn run(&self) {
        let room = Arc::new(Semaphore::new(MOST_CALLERS));
        loop {
            // Further callers wait in the queue of the system.
            let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
            let source = Arc::clone(&self.source);
            let accepted = match &self.socket {
                MetricsSocket::Unix(listener, _) => listener.accept().await.map(|(stream, _)| {
                    tokio::spawn(async move {
                        answer(stream, source, false).await;
                        drop(place);
                    })
                }),
                MetricsSocket::Loopback(listener) => listener.accept().await.map(|(stream, _)| {
                    tokio::spawn(async move {
                        answer(stream, source, true).await;
                        drop(place);
                    })
                }),
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "a caller for metrics was not let in");
                sleep(PAUSE).await;
            }
        }
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        if let MetricsSocket::Unix(_, path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Answers one request. With `by_name`, it has to name this host: a page that a browser has loaded
/// from elsewhere names its own.
async fn answer<S>(stream: S, source: Arc<MetricsSource>, by_name: bool)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request: Request<Incoming>| {
        let source = Arc::clone(&source);
        async move { Ok::<_, Infallible>(respond(&request, &source, by_name).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST).keep_alive(false);
    http.max_buf_size(MOST_HEAD).max_headers(MOST_FIELDS);
    let served = timeout(CONNECTION, http.serve_connection(TokioIo::new(stream), service)).await;
    match served {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a caller for metrics is not understood"),
        Err(_) => tracing::debug!("a caller for metrics took too long"),
    }
}

async fn respond(
    request: &Request<Incoming>,
    source: &Arc<MetricsSource>,
    by_name: bool,
) -> Response<Full<Bytes>> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let plain = |status, text: &'static str| {
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        response
    };
    if by_name && !host.is_none_or(names_this_host) {
        return plain(StatusCode::FORBIDDEN, "ask for localhost\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "GET /metrics\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    match Arc::clone(source).text().await {
        Some(text) => {
            let mut response = Response::new(Full::new(text));
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        None => plain(StatusCode::SERVICE_UNAVAILABLE, "the rig file cannot be read\n"),
    }
}

/// Tells whether the name that a request is for is one of this host's own.
fn names_this_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

/// What answers are made of.
struct MetricsSource {
    lab: LabConfig,
    state: Mutex<SourceState>,
}

#[derive(Default)]
struct SourceState {
    last: Option<(Instant, Bytes)>,
    counters: RigCounters,
    /// The last one that could be read.
    catalogue: Option<Catalogue>,
}

impl MetricsSource {
    /// Returns the metrics; none if the rig file could never be read.
    async fn text(self: Arc<Self>) -> Option<Bytes> {
        // One caller reads, the others wait for its answer. A caller that has gone changes nothing:
        // the work belongs to no connection.
        let work = tokio::spawn(async move {
            let mut state = self.state.lock().await;
            if let Some((at, text)) = &state.last
                && at.elapsed() < FRESH
            {
                return Some(text.clone());
            }
            let (lab, mut taken) = (self.lab.clone(), std::mem::take(&mut *state));
            let read = tokio::task::spawn_blocking(move || {
                if let Ok(catalogue) = Catalogue::load(&lab) {
                    taken.catalogue = Some(catalogue);
                }
                let text = match &taken.catalogue {
                    Some(catalogue) => Some(families::text(catalogue, &mut taken.counters)),
                    None => None,
                };
                (taken, text.map(Bytes::from))
            });
            let (now, text) = read.await.ok()?;
            *state = now;
            state.last = text.clone().map(|text| (Instant::now(), text));
            text
        });
        work.await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_from_elsewhere_does_not_name_this_host() {
        for ours in ["localhost", "LOCALHOST:9464", "127.0.0.1", "127.0.0.1:9464", "[::1]:9464"] {
            assert!(names_this_host(ours), "{ours}");
        }
        for other in ["example.org", "example.org:9464", "127.0.0.1.example.org", "10.0.0.1", ""] {
            assert!(!names_this_host(other), "{other}");
        }
    }
}
