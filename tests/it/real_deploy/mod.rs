//! The files of `deploy/` in real programs: Prometheus, Alertmanager, an agent, a container, a pod.

mod agent;
mod alerts;
mod dashboards;
mod fast;
mod image;
mod releases;
mod replicas;
mod shards;
