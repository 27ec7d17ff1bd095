//! The names that the file of a call needs.

pub(super) use pds_exposition::Family;
pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Serialize};

pub(super) use super::call::{Call, Command, Method};
pub(super) use super::number::Number;
pub(super) use super::param::{Param, ParamKind};
pub(super) use super::polled::{
    Cadence, Counted, MetricSource, Point, Polled, Reading, Row, Scope, Tally, Terms, rows,
};
pub(super) use super::reader::{Reader, Unexpected};
pub(super) use super::reply::{DecodeError, ReplyBody, needed, object};
pub(super) use super::wire::{Flag, Text, optional_list};
pub(super) use super::{Place, Resource};
