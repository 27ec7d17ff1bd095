//! Serves a world on a listener.

use std::convert::{Infallible, identity};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited, StreamBody};
use httpdate::fmt_http_date;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::answer::{Answer, Answered};
use super::control;
use super::disturb::{Cut, Disturbed, Sent, replaces_the_call};
use super::routes::{self, Route};
use super::world::World;

/// Maximum size of a request's body.
const MAX_BODY: usize = 1024 * 1024;

/// Answers for `world` on `listener`, over HTTP/1.1 and HTTP/2 (with prior knowledge), until this future is dropped, which
/// closes all connections.
pub async fn serve(world: World, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // Errors concern a single connection, or are a temporary lack of descriptors.
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(world.clone(), stream));
                }
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(world: World, stream: TcpStream) {
    world.journal(|journal| journal.connections += 1);
    // Small replies must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    // A second descriptor, as the connection owns the stream.
    let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return };
    let reset = Arc::new(Notify::new());
    let service = service_fn(|request| respond(world.clone(), Arc::clone(&reset), request));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Replies have the date of the world's clock, or none.
    builder.http1().header_read_timeout(None).auto_date_header(false);
    builder.http2().auto_date_header(false);
    tokio::select! {
        _ = builder.serve_connection(TokioIo::new(stream), service) => {}
        () = reset.notified() => {
            // Without lingering the kernel sends RST instead of FIN.
            let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
        }
    }
}

async fn respond(
    world: World,
    reset: Arc<Notify>,
    request: Request<Incoming>,
) -> Result<Response<impl Body<Data = Bytes, Error = Cut>>, Infallible> {
    let (parts, body) = request.into_parts();
    let disturbed = match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => {
            reply(&world, &Request::from_parts(parts, body.to_bytes())).unwrap_or_else(Disturbed::new)
        }
        Err(_) => Disturbed::new(Answer::refusal(413, "the body is too large")),
    };
    if !disturbed.delay.is_zero() {
        tokio::time::sleep(disturbed.delay).await;
    }
    if disturbed.reset {
        reset.notify_one();
        return std::future::pending().await;
    }
    Ok(response(&world, disturbed))
}

/// Finds the call, answers it, and applies faults.
fn reply(world: &World, request: &Request<Bytes>) -> Answered<Disturbed> {
    let path = request.uri().path();
    if let Some(subject) = path.strip_prefix(control::PREFIX) {
        return control::answer(world, subject, request).map(Disturbed::new);
    }
    let route = Route::find(request.method().as_str(), path)?;
    let mut entry = routes::entry(world, &route, request);
    let faults = world.faults().draw(route.call, &entry);
    let is_replaced = faults.iter().any(replaces_the_call);
    let answer = if is_replaced { Ok(Answer::empty()) } else { routes::answer(world, route, request) };
    let mut disturbed = Disturbed::new(answer.unwrap_or_else(identity));
    for fault in &faults {
        disturbed.apply(fault);
    }
    entry.status = (!disturbed.reset).then_some(disturbed.answer.status);
    world.journal(|journal| journal.record(entry, world.settings().journal));
    Ok(disturbed)
}

fn response(world: &World, disturbed: Disturbed) -> Response<impl Body<Data = Bytes, Error = Cut> + use<>> {
    let Disturbed { answer, sent, skew, .. } = disturbed;
    let Sent { pieces, length } = sent.unwrap_or_else(|| Sent::whole(answer.body));
    let now = world.clock().now();
    let date = fmt_http_date(now.checked_add(skew).unwrap_or(now).into());
    let mut response = Response::new(StreamBody::new(pieces.map_ok(Frame::data)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.extend(answer.headers);
    let length = length.filter(|_| answer.status != 204);
    headers.extend(length.map(|length| (header::CONTENT_LENGTH, HeaderValue::from(length))));
    if !world.settings().quirks.undated {
        headers.extend(HeaderValue::from_str(&date).ok().map(|date| (header::DATE, date)));
    }
    response
}
