//! All integration tests in one binary: one link, and shared ways to start the parts. A module per theme.
