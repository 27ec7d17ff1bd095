//! The cost of the status pages of many apps, in this process.

use std::time::Instant;

use pds_exporter::pages::{Asset, Rendered};
use pds_exposition::Format;

use crate::fixture::site::Site;
use crate::fixture::{self, rivals};
use crate::table::{self, Figure, Target};

/// The most that a status page may take beside the metrics page of the same apps: readers share it for a second.
const METRICS_PAGE: f64 = 2.0;

/// The overview, its model read anew each time, beside the metrics page of the same apps, which also visits every app.
pub(crate) fn overview(_daemon: &str) {
    let mut before: Option<(f64, f64)> = None;
    for (apps, name) in [(2_000, "2,000"), (10_000, "10,000")] {
        let site = Site::new(apps);
        let (mut times, mut ratios, mut of_app, mut scrape) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let app = format!("/apps/{}/{}", fixture::project(0), fixture::app(0));
        let mut page = String::new();
        for _ in 0..21 {
            let (text, overview) = timed(&site, "/");
            page = text;
            let began = Instant::now();
            site.filled.render(Format::Text, &mut scrape);
            ratios.push(overview / (began.elapsed().as_secs_f64() * 1e3));
            times.push(overview);
            of_app.push(timed(&site, &app).1);
        }
        let (time, weight) = (Figure::of(times), kilobytes(&page));
        let median = time.median();
        let what = |what: &str| format!("status page of {name} apps{what}");
        table::row(
            &what(" / metrics page"),
            Figure::of(ratios),
            2,
            Target::AtMost(METRICS_PAGE),
            "time to make each anew",
        );
        table::row(&what(", ms"), time, 1, Target::None, "model and first page, made anew");
        table::row(&what(", kB"), weight, 1, Target::AtMost(10.0), "first page, gzip");
        table::row(
            &format!("page of one app of {name}, ms"),
            Figure::of(of_app),
            1,
            Target::None,
            "made anew",
        );
        if let Some((few, light)) = before {
            let straight = median / (few * 5.0);
            table::row(
                &what(" / five times 2,000 apps"),
                straight,
                2,
                Target::AtMost(2.0),
                "time; most of 2,000 apps fits into the processor's cache",
            );
            table::row(&what(" / of 2,000 apps"), weight / light, 2, Target::AtMost(1.05), "bytes, gzip");
        }
        before = Some((median, weight));
        if apps == 2_000 {
            let assets: f64 = assets(&page).map(kilobytes).sum();
            let note = "gzip; kept by the browser until the next version";
            table::row("style, scripts and icons, kB", assets, 1, Target::None, note);
        }
    }
}

/// The page at `path` and how many milliseconds it took, the model included.
fn timed(site: &Site, path: &str) -> (String, f64) {
    site.forget();
    let began = Instant::now();
    let reply = site.pages.respond(path, "");
    let took = began.elapsed().as_secs_f64() * 1e3;
    assert!(matches!(reply, Some(Rendered::Page(_))), "{path}: {reply:?}");
    let text = if let Some(Rendered::Page(text)) = reply { text } else { String::new() };
    (text, took)
}

/// The files below `/static/` that `page` refers to.
fn assets(page: &str) -> impl Iterator<Item = &'static str> {
    let files = page.split('"').filter_map(|link| link.strip_prefix("/static/"));
    files.filter_map(|file| Some(Asset::named(file)?.content))
}

fn kilobytes(text: &str) -> f64 {
    rivals::gzip(text.as_bytes()).len() as f64 / 1e3
}
