//! A small client of web interfaces: one request, one connection, a bounded answer.
//!
//! Redirects are not followed: a device that wants another address, or encryption, is told
//! so in the rig file.

mod digest;
mod tls;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT, WWW_AUTHENTICATE};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use jig_model::power::{HttpAuth, HttpMethod, TlsTrust, WebAddress};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use self::digest::Challenge;
use super::error::quote;
use super::{PowerError, Secret};

/// Most of an answer that is read. A plug's state is a line; a Redfish system is some 10 KiB.
const MAX_ANSWER: usize = 256 << 10;

/// Largest head of an answer.
const MAX_HEAD: usize = 16 << 10;

/// One web interface, and the credentials for it.
pub(super) struct Web {
    address: WebAddress,
    tls: Option<TlsConnector>,
    auth: HttpAuth,
    user: String,
    password: Option<Secret>,
}

/// What a web interface answered.
pub(super) struct WebAnswer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    challenge: Option<String>,
}

/// One request.
#[derive(Clone)]
pub(super) struct WebCall {
    pub(super) method: HttpMethod,
    /// Path and query, to be put behind the address.
    pub(super) path: String,
    /// JSON.
    pub(super) body: Option<String>,
}

impl WebCall {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self { method: HttpMethod::Get, path: path.into(), body: None }
    }
}

impl Web {
    pub(super) fn new(
        address: WebAddress,
        trust: &TlsTrust,
        auth: HttpAuth,
        user: Option<&str>,
        password: Option<Secret>,
    ) -> Result<Self, PowerError> {
        let tls = match address.tls {
            true => Some(tls::connector(trust)?),
            false => None,
        };
        Ok(Self { address, tls, auth, user: user.unwrap_or_default().to_owned(), password })
    }

    /// Returns the address: without path and query, which may hold a password.
    pub(super) fn what(&self) -> String {
        self.address.to_string()
    }

    pub(super) fn user(&self) -> &str {
        &self.user
    }

    pub(super) fn password(&self) -> Option<&Secret> {
        self.password.as_ref()
    }

    /// Sends a request, with credentials.
    pub(super) async fn call(&self, call: WebCall) -> Result<WebAnswer, PowerError> {
        let password = match (&self.password, self.auth) {
            (Some(password), HttpAuth::Basic | HttpAuth::Digest) => password,
            (None, _) | (_, HttpAuth::None) => return self.once(&call, None).await,
        };
        if self.auth == HttpAuth::Basic {
            let both = format!("{}:{}", self.user, password.reveal());
            return self.once(&call, Some(format!("Basic {}", BASE64.encode(both)))).await;
        }
        let first = self.once(&call, None).await?;
        let Some(asked) = first.challenge.as_ref().filter(|_| first.status == 401) else {
            return Ok(first);
        };
        let challenge = Challenge::parse(asked)
            .ok_or_else(|| PowerError::garbage(self.what(), asked.as_bytes()))?;
        let path = format!("{}{}", self.address.base, call.path);
        let proof = challenge.answer(&self.user, password, method(call.method).as_str(), &path);
        self.once(&call, Some(proof)).await
    }

    /// Asks, and takes only an answer that means success.
    pub(super) async fn ask(&self, call: WebCall) -> Result<WebAnswer, PowerError> {
        let answer = self.call(call).await?;
        let status = answer.status;
        if status.is_success() {
            return Ok(answer);
        }
        let why = match status.as_u16() {
            401 | 403 if self.password.is_some() => {
                format!("it does not believe the user and the password ({status})")
            }
            401 | 403 => format!("it wants a user and a password ({status})"),
            300..=399 => format!("it sends one elsewhere ({status}): write where in the rig file"),
            _ => match answer.body.trim_ascii() {
                [] => status.to_string(),
                said => format!("{status}, {}", quote(said)),
            },
        };
        Err(PowerError::refused(self.what(), why))
    }

    async fn once(&self, call: &WebCall, proof: Option<String>) -> Result<WebAnswer, PowerError> {
        let unreachable =
            |source: std::io::Error| PowerError::Unreachable { what: self.what(), source };
        let host = (self.address.host.as_str(), self.address.port);
        let tcp = TcpStream::connect(host).await.map_err(unreachable)?;
        match &self.tls {
            None => self.exchange(TokioIo::new(tcp), call, proof).await,
            Some(connector) => {
                let name = tls::name(&self.address.host)?;
                let stream = connector.connect(name, tcp).await.map_err(unreachable)?;
                self.exchange(TokioIo::new(stream), call, proof).await
            }
        }
    }

    async fn exchange<S>(
        &self,
        stream: TokioIo<S>,
        call: &WebCall,
        proof: Option<String>,
    ) -> Result<WebAnswer, PowerError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let request = self.request(call, proof)?;
        let broken = |error: hyper::Error| {
            if error.is_parse() {
                let said = format!("no HTTP ({error})");
                return PowerError::Garbage { what: self.what(), said };
            }
            let source = std::io::Error::other(error);
            PowerError::Unreachable { what: self.what(), source }
        };
        let mut builder = http1::Builder::new();
        let (mut sender, connection) = builder
            .max_buf_size(MAX_HEAD)
            .handshake::<_, Full<Bytes>>(stream)
            .await
            .map_err(broken)?;
        let asked = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let (head, body) = response.into_parts();
            let challenge = head.headers.get(WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok()).map(str::to_owned);
            let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    let said = format!("more than {MAX_ANSWER} bytes");
                    return PowerError::Garbage { what: self.what(), said };
                }
                let source = std::io::Error::other(error);
                PowerError::Unreachable { what: self.what(), source }
            })?;
            Ok(WebAnswer { status: head.status, body: body.to_bytes().to_vec(), challenge })
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

    fn request(
        &self,
        call: &WebCall,
        proof: Option<String>,
    ) -> Result<Request<Full<Bytes>>, PowerError> {
        // Not even the error may quote the path: it may hold a password.
        let unfit = |what: &'static str| {
            PowerError::unusable(self.what(), format!("{what} cannot be sent by HTTP"))
        };
        let host = match self.address.host.contains(':') {
            true => format!("[{}]:{}", self.address.host, self.address.port),
            false => format!("{}:{}", self.address.host, self.address.port),
        };
        let mut request = Request::builder()
            .method(method(call.method))
            .uri(format!("{}{}", self.address.base, call.path))
            .header(HOST, host)
            .header(USER_AGENT, "jig");
        if let Some(proof) = proof {
            let mut value = HeaderValue::try_from(proof).map_err(|_| unfit("the password"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = call.body.clone().unwrap_or_default();
        request.body(Full::new(Bytes::from(body))).map_err(|_| unfit("the path"))
    }
}

fn method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
    }
}
