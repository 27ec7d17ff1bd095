//! The cost of making a page, in this process: no network, no other work.

use std::time::Instant;

use pds_exporter::store::{Filter, Pages};
use pds_exposition::Format;
use pds_web::Encoding;

use crate::fixture::store::Filled;
use crate::fixture::{APPS_A_PROJECT, project, rivals};
use crate::table::{self, Figure, Target};

/// The least ratio of the `prometheus` crate's time to ours.
const RIVAL: f64 = 25.0;

/// Renders and compresses at both sizes, each beside its rivals.
pub(crate) fn cost(_daemon: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (apps, size, target) in [(1_000, "100k", 50.0), (10_000, "1M", 80.0)] {
        let filled = runtime.block_on(Filled::new(apps));
        let mut page = Vec::new();
        filled.render(Format::Text, &mut page);
        let series = rivals::series(&page);
        let count = series.len() as f64;
        let registry = (apps == 1_000).then(|| rivals::registry(&series));
        let pages = Pages::new(filled.store.clone(), filled.telemetry.clone());
        let (mut copy, mut other) = (Vec::new(), Vec::new());
        let nanos = |run: &mut dyn FnMut()| {
            let began = Instant::now();
            run();
            began.elapsed().as_secs_f64() * 1e9 / count
        };
        let [mut render, mut memcpy, mut formatted, mut gathered, mut gzip, mut first] =
            [const { Vec::new() }; 6];
        for _ in 0..11 {
            filled.change();
            render.push(nanos(&mut || filled.render(Format::Text, &mut page)));
            memcpy.push(nanos(&mut || {
                copy.clear();
                copy.extend_from_slice(&page);
            }));
            formatted.push(nanos(&mut || rivals::std_write(&series, &mut other)));
            if let Some(registry) = &registry {
                gathered.push(nanos(&mut || rivals::registry_page(registry, &mut other)));
            }
            let plain = nanos(&mut || filled.render(Format::Text, &mut page));
            let pass = nanos(&mut || drop(rivals::gzip(&page)));
            gzip.push(pass);
            first.push(
                nanos(&mut || drop(runtime.block_on(filled.page(&pages, Encoding::Gzip)))) / (plain + pass),
            );
        }
        let render = Figure::of(render);
        let gathered = (!gathered.is_empty()).then(|| Figure::of(gathered));
        let ratio = gathered.as_ref().map(|gathered| gathered.median() / render.median());
        // The limit is the one or the other.
        let (target, note) = match ratio {
            Some(RIVAL..) => {
                (Target::None, "ns a series; at most 50, or the ratio to the `prometheus` crate")
            }
            _ => (Target::AtMost(target), "ns a series"),
        };
        table::row(&format!("page of {size} series after a change"), render, 1, target, note);
        table::row(
            &format!("memcpy of the page, {size}"),
            Figure::of(memcpy),
            1,
            Target::None,
            "ns a series",
        );
        table::row(&format!("std write!, {size}"), Figure::of(formatted), 1, Target::None, "ns a series");
        if let (Some(gathered), Some(ratio)) = (gathered, ratio) {
            table::row(
                "`prometheus` crate, gather + encode / page after a change",
                ratio,
                1,
                Target::AtLeast(RIVAL),
                "100k series",
            );
            table::row("`prometheus` crate, gather + encode", gathered, 0, Target::None, "ns a series");
        }
        table::row(
            &format!("one zlib-rs level 1 pass, {size}"),
            Figure::of(gzip),
            1,
            Target::None,
            "ns a series",
        );
        table::row(
            &format!("first gzip page of {size} / (render + one pass)"),
            Figure::of(first),
            2,
            Target::AtMost(1.3),
            "",
        );
    }
    part(&runtime);
}

/// One app in twenty, by project and by app, beside the page of a store that has no others.
fn part(runtime: &tokio::runtime::Runtime) {
    const APPS: usize = 20_000;
    let whole = runtime.block_on(Filled::new(APPS));
    let just = runtime.block_on(Filled::new(APPS / 20));
    let projects: Vec<String> = (0..APPS).step_by(20 * APPS_A_PROJECT).map(project).collect();
    let owners = whole.plan.targets.iter().map(|target| &target.key.owner);
    let of_projects =
        owners.filter(|owner| !owner.app.is_empty() && projects.contains(&owner.project.to_string()));
    let apps = of_projects.map(|owner| owner.app.to_string()).collect();
    let (mut page, mut others) = (Vec::new(), Vec::new());
    let filters = [
        ("project", Filter { projects, ..Filter::default() }),
        ("app", Filter { apps, ..Filter::default() }),
    ];
    for (key, filter) in filters {
        let ratios = (0..11).map(|_| {
            let began = Instant::now();
            whole.render_part(Format::Text, &filter, &mut page);
            let selected = began.elapsed().as_secs_f64() / page.len() as f64;
            let began = Instant::now();
            just.render(Format::Text, &mut others);
            selected / (began.elapsed().as_secs_f64() / others.len() as f64)
        });
        table::row(
            &format!("one app in twenty of 2M series by `{key}` / page of just these"),
            Figure::of(ratios.collect()),
            2,
            Target::AtMost(1.5),
            "time a byte of the page",
        );
    }
}
