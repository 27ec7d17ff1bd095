//! The service's clock and ours are apart: what is counted then, what stands on the page, and what the page says.

use pds_exporter::interface::Resource;

use super::rig::Rig;

const HOUR: i64 = 3600;
/// The rig's clock at its first poll, cut to the step: where counting begins with clocks that agree.
const FIRST: i64 = 1_772_366_400 + 30;

fn skew(rig: &Rig) -> f64 {
    rig.page().value("pds_api_clock_skew_seconds")
}

#[tokio::test]
async fn behind() {
    let rig = Rig::start(Resource::App).await;
    rig.set_clock_apart(-HOUR);
    for poll in 0..6 {
        rig.poll().await;
        eprintln!("{poll} {} {} {:?} up {}", skew(&rig), rig.sentence(), rig.problems(), rig.page().all_up());
    }
    eprintln!("{}", rig.page().text);
}
