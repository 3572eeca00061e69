//! Encryption, and which certificates are believed.

use std::path::Path;
use std::sync::Arc;

use jig_model::power::TlsTrust;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::power::PowerError;

/// Makes what encrypts connections.
pub(super) fn connector(trust: &TlsTrust) -> Result<TlsConnector, PowerError> {
    let unusable = |error: Error| PowerError::unusable("TLS", error);
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let config = match trust {
        TlsTrust::Anything => config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anything(provider)))
            .with_no_client_auth(),
        TlsTrust::System => config.with_root_certificates(of_this_host()).with_no_client_auth(),
        TlsTrust::File(path) => config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Known::read(path, provider)?))
            .with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Takes a host as the name in its certificate.
pub(super) fn name(host: &str) -> Result<ServerName<'static>, PowerError> {
    ServerName::try_from(host.to_owned())
        .map_err(|error| PowerError::unusable(format!("the host name {host:?}"), error))
}

fn of_this_host() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // A host may have certificates that cannot be parsed; the others count.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Believes the certificates of a file, and those that they have signed.
///
/// Most small devices come with a certificate that they have signed themselves, and that
/// claims to be an authority, too; the rules of the web refuse it as a server's, however
/// well it is known.
#[derive(Debug)]
struct Known {
    certificates: Vec<CertificateDer<'static>>,
    signed: Arc<WebPkiServerVerifier>,
}

impl Known {
    fn read(path: &Path, provider: Arc<CryptoProvider>) -> Result<Self, PowerError> {
        let what = || format!("the certificates in {}", path.display());
        let unusable = |error| PowerError::unusable(what(), error);
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(unusable)?;
        if certificates.is_empty() {
            return Err(PowerError::unusable(what(), "there is none"));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            let added = roots.add(certificate.clone());
            added.map_err(|error| PowerError::unusable(what(), error))?;
        }
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| PowerError::unusable(what(), error))?;
        Ok(Self { certificates, signed })
    }
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        more: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The very certificate that the user has put into the file: that is stronger than a
        // matching name and date.
        if self.certificates.iter().any(|known| known == certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        self.signed.verify_server_cert(certificate, more, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// Believes any certificate, as the rig file says; signatures are still checked.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        tokio_rustls::rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        tokio_rustls::rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
