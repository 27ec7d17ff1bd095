//! The limit of serving: a hyper server that answers with a constant body, and does nothing else.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

/// Serves the contents of `file` until the process is ended.
pub(crate) async fn serve(file: &str) {
    let body = Bytes::from(std::fs::read(file).unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening {}", listener.local_addr().unwrap());
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let body = body.clone();
        tokio::spawn(async move {
            let service = service_fn(move |_| {
                let body = body.clone();
                async move { Ok::<_, Infallible>(Response::new(Full::new(body))) }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
