//! Who may read, and in which form.

pub mod pages;
