//! Replies for people: facts and tables with their units, a bar for a distribution.
//!
//! `Show` has a method for each call whose reply deserves more than a list of its fields. No field is lost: a method
//! takes the fields that it shows out of `Fields`, and what is left stands at the end, as it came.

mod app;
mod build;
mod domain;
pub(super) mod fields;
mod metrics;
mod project;
mod repo;

use crate::page::Block;
use pds_interface::{
    Call, DecodeError, ReplyBody, Visitor, branches, change_plan, delete_app, delete_domain, file_tree,
    get_app, list_domains, list_projects, payment_url, response_time, run_execution_time, unassign_domain,
    validate_domain, visits, volume_alerts, zip_contents,
};

use super::View;
use fields::Fields;

/// The reply of `call` for people.
///
/// # Errors
/// If the reply is not what the interface says.
pub fn view(call: &'static Call, body: &[u8]) -> Result<View, DecodeError> {
    let visit = visits::<Show>().into_iter().find(|(known, _)| known.id == call.id);
    visit.map_or_else(|| Ok(View::default()), |(_, visit)| visit(&Show { fields: Fields::of(body) }, body))
}

/// Makes a [`View`] of any reply.
#[derive(Debug)]
struct Show {
    /// All fields of the reply, those included that the interface does not show.
    fields: Fields,
}

impl Visitor for Show {
    type Output = View;

    fn visit_other<R: ReplyBody>(&self, _: &'static Call, _: R) -> View {
        self.fields.clone().all().into()
    }

    fn list_projects(&self, reply: list_projects::Reply) -> View {
        project::list(&reply, &self.fields)
    }

    fn list_domains(&self, reply: list_domains::Reply) -> View {
        domain::list(&reply, self.fields.clone())
    }

    fn volume_alerts(&self, reply: volume_alerts::Reply) -> View {
        project::volume_alerts(&reply, self.fields.clone())
    }

    fn get_app(&self, reply: get_app::Reply) -> View {
        app::view(&reply, self.fields.clone())
    }

    fn delete_app(&self, message: delete_app::Reply) -> View {
        text(if message.is_empty() { "The app was deleted." } else { &message })
    }

    fn response_time(&self, reply: response_time::Reply) -> View {
        metrics::response_time(&reply.data, self.fields.inside("data"))
    }

    fn run_execution_time(&self, reply: run_execution_time::Reply) -> View {
        metrics::run_execution_time(&reply.data, self.fields.inside("data"))
    }

    fn change_plan(&self, _: change_plan::Reply) -> View {
        let mut fields = self.fields.clone();
        let sentence = match &*fields.text("redirectUrl") {
            "" => "The plan is changed; there is nothing to pay.".to_owned(),
            url => format!("To complete the payment, open\n{url}"),
        };
        fields.after(vec![Block::Text(sentence)]).into()
    }

    /// The checkout URL and nothing else, so that it can be handed on.
    fn payment_url(&self, url: payment_url::Reply) -> View {
        text(&url)
    }

    fn zip_contents(&self, reply: zip_contents::Reply) -> View {
        build::zip_contents(&reply, self.fields.clone())
    }

    fn file_tree(&self, reply: file_tree::Reply) -> View {
        repo::tree(&reply, self.fields.clone())
    }

    fn branches(&self, reply: branches::Reply) -> View {
        repo::branches(&reply, self.fields.clone())
    }

    fn validate_domain(&self, reply: validate_domain::Reply) -> View {
        domain::validated(&reply, self.fields.clone())
    }

    fn unassign_domain(&self, (): unassign_domain::Reply) -> View {
        text("The domain is unassigned.")
    }

    fn delete_domain(&self, (): delete_domain::Reply) -> View {
        text("The domain was deleted.")
    }
}

fn text(text: &str) -> View {
    vec![Block::Text(text.to_owned())].into()
}
