//! Connections whose bytes are watched. Names, proxies and TLS are those of `reqwest`, which lets nobody wrap its
//! connections; so a layer below its client fails each attempt to connect with an error that holds the connection.

use std::error::Error;
use std::fmt;
use std::future::{Ready, ready};
use std::iter::successors;
use std::sync::Mutex;

use http::Uri;
use hyper_util::rt::TokioIo;
use reqwest::ClientBuilder;
use tower::util::{AndThenLayer, BoxCloneSyncService};
use tower::{BoxError, service_fn};

use super::BuildError;
use super::interim::{BoxStream, Stream, Watched};

/// Connects, for the client of `hyper_util`. It fails with a [`Held`] error of `reqwest`.
pub type Connector = BoxCloneSyncService<Uri, TokioIo<Watched>, BoxError>;

/// Connects as `client` does.
///
/// # Errors
/// If the client cannot be built.
pub fn connector(client: ClientBuilder) -> Result<Connector, BuildError> {
    let client = client.connector_layer(AndThenLayer::new(hold)).build()?;
    Ok(BoxCloneSyncService::new(service_fn(move |to: Uri| {
        let attempt = client.get(to.to_string()).send();
        async move {
            let Err(error) = attempt.await else { return Err("a reply without a connection".into()) };
            match Held::take_from(&error) {
                Some(stream) => Ok(TokioIo::new(Watched::new(stream))),
                None => Err(Held::new(error).into()),
            }
        }
    })))
}

/// Fails with the connection that was made.
fn hold<S: Stream + 'static>(stream: S) -> Ready<Result<S, BoxError>> {
    let stream: BoxStream = Box::new(stream);
    ready(Err(Held::new(stream).into()))
}

/// A value on its way through a library that passes errors on as they are.
#[derive(thiserror::Error)]
#[error("no connection")]
pub struct Held<T>(Mutex<Option<T>>);

impl<T: 'static> Held<T> {
    fn new(value: T) -> Self {
        Self(Mutex::new(Some(value)))
    }

    /// The value that `error` or one of its causes holds.
    pub fn take_from(error: &(dyn Error + 'static)) -> Option<T> {
        let mut causes = successors(Some(error), |error| (*error).source());
        causes.find_map(|cause| cause.downcast_ref::<Self>()?.0.lock().ok()?.take())
    }
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}
