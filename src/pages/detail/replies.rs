//! The last raw replies, for `--web.show-replies`.

use maud::{Markup, html};

use crate::status::detail::Detail;

use super::super::format::{self, ago};
use super::super::layout::Frame;

/// The replies of an app, folded.
pub(super) fn replies(frame: Frame<'_>, detail: &Detail) -> Markup {
    html! {
        section aria-labelledby="replies" {
            h2 #replies { "Last replies" }
            p .sub { "As the service sent them, without tokens. They are kept while memory allows, and for apps whose pages are open." }
            @for (resource, reply) in &detail.replies {
                @match reply {
                    Some(reply) => details .reply {
                        summary { (format::resource(resource)) " " span .sub { (reply.text.len()) " bytes, " (ago(reply.at, frame.now)) } }
                        button type="button" .copy hidden { "Copy" }
                        pre tabindex="0" role="region" aria-label={ "Reply: " (format::resource(resource)) } { (indented(&reply.text)) }
                    }
                    None => p .none { (format::resource(resource)) ": not kept; the next reply will be." }
                }
            }
        }
    }
}

/// Indented JSON; any other text unchanged.
fn indented(text: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| text.to_owned())
}
