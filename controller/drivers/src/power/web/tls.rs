//! Encryption, and which certificates are believed.

use std::sync::Arc;

use jig_model::power::TlsTrust;
use tokio_rustls::TlsConnector;
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
        TlsTrust::System | TlsTrust::File(_) => {
            config.with_root_certificates(roots(trust)?).with_no_client_auth()
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Takes a host as the name in its certificate.
pub(super) fn name(host: &str) -> Result<ServerName<'static>, PowerError> {
    ServerName::try_from(host.to_owned())
        .map_err(|error| PowerError::unusable(format!("the host name {host:?}"), error))
}

fn roots(trust: &TlsTrust) -> Result<RootCertStore, PowerError> {
    let mut roots = RootCertStore::empty();
    match trust {
        TlsTrust::File(path) => {
            let what = || format!("the certificates in {}", path.display());
            let unusable = |error| PowerError::unusable(what(), error);
            let mut found = 0;
            for certificate in CertificateDer::pem_file_iter(path).map_err(unusable)? {
                let certificate = certificate.map_err(unusable)?;
                roots.add(certificate).map_err(|error| PowerError::unusable(what(), error))?;
                found += 1;
            }
            if found == 0 {
                return Err(PowerError::unusable(what(), "there is none"));
            }
        }
        TlsTrust::System | TlsTrust::Anything => {
            // A host may have certificates that nobody can parse; the others count.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(roots)
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
