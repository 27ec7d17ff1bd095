//! The web configuration file.
