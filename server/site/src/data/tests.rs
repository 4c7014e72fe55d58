//! Files on SQLite, without a site around them.
