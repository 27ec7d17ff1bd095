//! TLS handshakes. Their cost (an RSA signature takes milliseconds) is kept off the serving thread.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::sync::Notify;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::listen::Stream;
use super::turns::{Peer, Turns};

/// Handshakes computed at once. One leaves the other processors to scrapes.
pub(super) const MAX_CONCURRENT: usize = 1;

/// Handshakes that may wait for their turn, at a few milliseconds each.
pub(super) const MAX_WAITING: usize = 256;

/// Performs the handshake with a client.
///
/// # Errors
/// If the client does not speak TLS as `config` requires, or too many handshakes wait.
pub(super) async fn accept(
    stream: Box<dyn Stream>,
    config: Arc<ServerConfig>,
    turns: &Arc<Turns>,
    peer: Peer,
) -> io::Result<TlsStream<Box<dyn Stream>>> {
    // Nothing is computed until the client's hello has arrived.
    let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    // `into_stream` answers the hello, which is a computation, too.
    let mut rest: Box<dyn FnOnce() -> _ + Send> = Box::new(move || Box::pin(hello.into_stream(config)));
    let woken = Arc::new(Woken::default());
    // Key exchange, signature and the client's chain are computed in different steps, and a client may require further
    // steps (HelloRetryRequest), so each step takes a turn.
    loop {
        let turn = turns.acquire(peer, None).await;
        let turn = turn.ok_or_else(|| io::Error::other("too many TLS handshakes wait"))?;
        let waker = Waker::from(Arc::clone(&woken));
        let step = tokio::task::spawn_blocking(move || {
            let mut accept = rest();
            let step = accept.as_mut().poll(&mut Context::from_waker(&waker));
            drop(turn);
            (accept, step)
        });
        match step.await? {
            (_, Poll::Ready(stream)) => return stream,
            (accept, Poll::Pending) => rest = Box::new(move || accept),
        }
        woken.0.notified().await;
    }
}

/// Notifies that bytes have arrived, or that there is room for more.
#[derive(Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::thread::ThreadId;

    use parking_lot::Mutex;
    use rustls::client::danger::HandshakeSignatureValid;
    use rustls::crypto::ring::{self, kx_group};
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
    use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
    use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
    use rustls::sign::{CertifiedKey, Signer, SigningKey};
    use rustls::{
        ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureAlgorithm,
        SignatureScheme,
    };

    use super::*;

    /// The threads on which something was computed.
    type Threads = Arc<Mutex<Vec<ThreadId>>>;

    #[derive(Debug)]
    struct Watched<T>(T, Threads);

    impl<T> Watched<T> {
        fn computed(&self) {
            self.1.lock().push(std::thread::current().id());
        }
    }

    impl ResolvesServerCert for Watched<Arc<CertifiedKey>> {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            self.computed();
            Some(Arc::clone(&self.0))
        }
    }

    impl SigningKey for Watched<Arc<dyn SigningKey>> {
        fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
            Some(Box::new(Watched(self.0.choose_scheme(offered)?, Arc::clone(&self.1))))
        }

        fn algorithm(&self) -> SignatureAlgorithm {
            self.0.algorithm()
        }
    }

    impl Signer for Watched<Box<dyn Signer>> {
        fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
            self.computed();
            self.0.sign(message)
        }

        fn scheme(&self) -> SignatureScheme {
            self.0.scheme()
        }
    }

    impl ClientCertVerifier for Watched<Arc<dyn ClientCertVerifier>> {
        fn root_hint_subjects(&self) -> &[DistinguishedName] {
            self.0.root_hint_subjects()
        }

        fn verify_client_cert(
            &self,
            certificate: &CertificateDer<'_>,
            others: &[CertificateDer<'_>],
            now: UnixTime,
        ) -> Result<ClientCertVerified, rustls::Error> {
            self.computed();
            self.0.verify_client_cert(certificate, others, now)
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            self.computed();
            self.0.verify_tls12_signature(message, certificate, signed)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            self.computed();
            self.0.verify_tls13_signature(message, certificate, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.supported_verify_schemes()
        }
    }

    /// A certificate of server and client that is its own authority.
    struct Identity {
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
        roots: Arc<RootCertStore>,
    }

    fn identity() -> Identity {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, mut roots) = (made.cert.der().clone(), RootCertStore::empty());
        roots.add(certificate.clone()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        Identity { certificate, key, roots: Arc::new(roots) }
    }

    fn server(Identity { certificate, key, roots }: &Identity, threads: &Threads) -> Arc<ServerConfig> {
        let key = Watched(ring::sign::any_supported_type(key).unwrap(), Arc::clone(threads));
        let certified = Arc::new(CertifiedKey::new(vec![certificate.clone()], Arc::new(key)));
        let mut provider = ring::default_provider();
        provider.kx_groups = vec![kx_group::X25519];
        let provider = Arc::new(provider);
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(&provider));
        let clients = Arc::new(Watched(clients.build().unwrap(), Arc::clone(threads)));
        let config = ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_client_cert_verifier(clients);
        Arc::new(config.with_cert_resolver(Arc::new(Watched(certified, Arc::clone(threads)))))
    }

    #[tokio::test]
    async fn no_step_of_a_handshake_is_computed_on_the_serving_thread() {
        // The second needs a retry, as the server lacks its first group; TLS 1.2 has a different key exchange.
        for (groups, version) in [
            (vec![kx_group::X25519], &rustls::version::TLS13),
            (vec![kx_group::SECP256R1, kx_group::X25519], &rustls::version::TLS13),
            (vec![kx_group::X25519], &rustls::version::TLS12),
        ] {
            let threads = Threads::default();
            let mut provider = ring::default_provider();
            provider.kx_groups = groups;
            let identity = identity();
            let server = server(&identity, &threads);
            let Identity { certificate, key, roots } = identity;
            let client = ClientConfig::builder_with_provider(Arc::new(provider));
            let client = client.with_protocol_versions(&[version]).unwrap().with_root_certificates(roots);
            let client = client.with_client_auth_cert(vec![certificate], key).unwrap();
            let (near, far) = tokio::io::duplex(64 * 1024);
            let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
            let turns = Turns::new(MAX_CONCURRENT, MAX_WAITING);
            let (accepted, connected) = tokio::join!(
                accept(Box::new(far), server, &turns, Peer::Local),
                connector.connect(ServerName::try_from("localhost").unwrap(), near),
            );
            assert!(accepted.is_ok() && connected.is_ok(), "{version:?}");
            let threads = threads.lock();
            // The key exchange, the signature, the client's chain and its signature.
            assert!(threads.len() >= 4, "{version:?}");
            assert!(!threads.contains(&std::thread::current().id()), "{version:?}");
        }
    }
}
