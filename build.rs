//! How the daemon is linked: the allocator's settings, and small relocations.

fn main() {
    if cfg!(feature = "jemalloc") {
        allocator();
    }
    pack_relocations();
}

/// Links the daemon with the settings of its allocator. The symbol must be there before `main`, and in Rust it would
/// take unsafe code; an environment variable for the allocator's own build is not set by `cargo install`.
fn allocator() {
    const SOURCE: &str = "src/bin/allocator.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    for object in cc::Build::new().file(SOURCE).compile_intermediates() {
        println!("cargo::rustc-link-arg-bin=pds-exporter={}", object.display());
    }
}

/// Writes the relocations of a static program as the addresses alone: a fortieth of what they take otherwise, which is
/// 370 kB of the daemon. It applies them itself at its start, with what the C library has for it since glibc 2.36.
fn pack_relocations() {
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if !is_static || target("ENV") != "gnu" {
        return;
    }
    const SOURCE: &str = "src/bin/relocations.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    let is_able = cc::Build::new().file(SOURCE).cargo_warnings(false).try_compile_intermediates().is_ok();
    if is_able {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
