//! One question over HTTP: one connection, one answer of a bounded size. No redirect is followed: the
//! key would travel with it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    USER_AGENT,
};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use jig_model::power::WebAddress;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::endpoint::HttpDialect;
use crate::wire::ANTHROPIC_VERSION;

/// Most of an answer that is read. 100,000 tokens have half of it.
pub const MAX_ANSWER: usize = 1 << 20;

/// Largest head of an answer.
const MAX_HEAD: usize = 64 << 10;

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(15);

/// Says why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The endpoint has not seen the question.
    #[error("no connection")]
    Unreachable(#[source] io::Error),
    /// The endpoint may have answered; nobody knows what it has counted.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The same.
    #[error("the answer is larger than {MAX_ANSWER} bytes")]
    TooLarge,
    /// The question cannot be sent.
    #[error("{0}")]
    Unfit(String),
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: StatusCode,
    /// How long the endpoint wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// Where it sends one.
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// An endpoint.
pub(crate) struct HttpEndpoint {
    address: WebAddress,
    tls: Option<TlsConnector>,
}

impl HttpEndpoint {
    /// Makes an endpoint that is believed if a certificate of this host says so.
    pub(crate) fn new(address: WebAddress) -> Result<Self, ExchangeError> {
        let mut roots = RootCertStore::empty();
        if address.tls {
            // A host may have certificates that cannot be parsed; the others count.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Self::trusting(address, roots)
    }

    fn trusting(address: WebAddress, roots: RootCertStore) -> Result<Self, ExchangeError> {
        if !address.tls {
            return Ok(Self { address, tls: None });
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ExchangeError::Unfit(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { address, tls: Some(TlsConnector::from(Arc::new(config))) })
    }

    /// Asks once.
    pub(crate) async fn ask(
        &self,
        path: &str,
        dialect: HttpDialect,
        key: Option<&str>,
        body: String,
    ) -> Result<RawAnswer, ExchangeError> {
        let request = self.request(path, dialect, key, body)?;
        let connected = tokio::time::timeout(CONNECT_TIME, self.connect(request)).await;
        let late = || ExchangeError::Unreachable(io::ErrorKind::TimedOut.into());
        match connected.map_err(|_| late())?? {
            Connected::Plain(tcp, request) => exchange(tcp, request).await,
            Connected::Tls(stream, request) => exchange(*stream, request).await,
        }
    }

    async fn connect(&self, request: Question) -> Result<Connected, ExchangeError> {
        let host = self.address.host.as_str();
        let tcp = TcpStream::connect((host, self.address.port)).await;
        let tcp = tcp.map_err(ExchangeError::Unreachable)?;
        let Some(connector) = &self.tls else { return Ok(Connected::Plain(tcp, request)) };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| ExchangeError::Unfit(format!("the host name {host:?}: {error}")))?;
        let stream = connector.connect(name, tcp).await.map_err(ExchangeError::Unreachable)?;
        Ok(Connected::Tls(Box::new(stream), request))
    }

    fn request(
        &self,
        path: &str,
        dialect: HttpDialect,
        key: Option<&str>,
        body: String,
    ) -> Result<Question, ExchangeError> {
        let WebAddress { tls, host, port, .. } = &self.address;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let usual = *port == if *tls { 443 } else { 80 };
        let host = if usual { host } else { format!("{host}:{port}") };
        let mut request = Request::post(path)
            .header(HOST, host)
            .header(USER_AGENT, "jig")
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json");
        if dialect == HttpDialect::Anthropic {
            request = request.header("anthropic-version", ANTHROPIC_VERSION);
        }
        if let Some(key) = key {
            let (name, value) = match dialect {
                HttpDialect::OpenAi => (AUTHORIZATION, format!("Bearer {key}")),
                HttpDialect::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            };
            // Not even the error may quote it.
            let unfit = || ExchangeError::Unfit("the key holds control characters".to_owned());
            let mut value = HeaderValue::try_from(value).map_err(|_| unfit())?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let unfit = |error: hyper::http::Error| ExchangeError::Unfit(error.to_string());
        request.body(Full::new(Bytes::from(body))).map_err(unfit)
    }
}

type Question = Request<Full<Bytes>>;

enum Connected {
    Plain(TcpStream, Question),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>, Question),
}

async fn exchange<S>(stream: S, request: Question) -> Result<RawAnswer, ExchangeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let broken = |error: hyper::Error| {
        let what = if error.is_parse() { "the answer is no HTTP: " } else { "" };
        ExchangeError::Broken(format!("{what}{}", jig_model::chain(&error)))
    };
    let mut builder = http1::Builder::new();
    let (mut sender, connection) = builder
        .max_buf_size(MAX_HEAD)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let asked = async {
        let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return ExchangeError::TooLarge;
            }
            ExchangeError::Broken(error.to_string())
        })?;
        let text = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
        let seconds = text(RETRY_AFTER).and_then(|text| text.trim().parse().ok());
        Ok(RawAnswer {
            status: head.status,
            retry_after: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            location: text(LOCATION).map(str::to_owned),
            body: body.to_bytes().to_vec(),
        })
    };
    // The connection does the work; it lives no longer than the exchange.
    let mut asked = std::pin::pin!(asked);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        answer = &mut asked => return answer,
        _ = &mut connection => {}
    }
    // It has ended: everything that will come is there, and so is its error.
    asked.await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

    use super::*;

    /// Makes a certificate of its own for this address of the host.
    fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let folder = tempfile::tempdir().unwrap();
        let mut openssl = std::process::Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        openssl.args(["-nodes", "-days", "2", "-subj", "/CN=model", "-keyout", "key.pem"]);
        openssl.args(["-out", "cert.pem", "-addext", "subjectAltName=IP:127.0.0.1"]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        let made = openssl.current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        (
            CertificateDer::from_pem_slice(&read("cert.pem")).unwrap(),
            PrivateKeyDer::from_pem_slice(&read("key.pem")).unwrap(),
        )
    }

    #[tokio::test]
    async fn a_certificate_is_believed_where_the_host_knows_it() {
        let (certificate, key) = certificate();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: WebAddress =
            format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
        let server = tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                // A client that does not believe it ends the connection.
                let Ok(mut stream) = acceptor.accept(tcp).await else { continue };
                let mut head = [0; 4];
                stream.read_exact(&mut head).await.unwrap();
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        });
        let ask = async |roots: RootCertStore| {
            let endpoint = HttpEndpoint::trusting(address.clone(), roots).unwrap();
            endpoint.ask("/", HttpDialect::OpenAi, Some("key"), String::new()).await
        };
        let mut roots = RootCertStore::empty();
        let error = ask(roots.clone()).await.unwrap_err();
        let words = jig_model::chain(&error);
        assert!(words.contains("no connection: invalid peer certificate"), "{words}");
        roots.add(certificate).unwrap();
        assert_eq!(ask(roots).await.unwrap().body, b"hi");
        server.abort();
    }
}
