//! The tables of the health store.
//!
//! # Format, version 1
//! Times are microseconds since 1970, UTC.

use crate::database::DatabaseFormat;

/// What tells the store from other databases.
pub(super) const FORMAT: DatabaseFormat = DatabaseFormat {
    what: "health store",
    // "jigh"
    application: 0x6a69_6768,
    version: 1,
    tables: TABLES,
};

/// Which board and devices the row and the events under the name of a place are about: the first ones
/// that were told. Those of others stand under the name, a line break and their words. Stores that were
/// begun before there was this table get it when they are opened; programs of that time do not miss it.
pub(super) const DEVICES: &str = "
CREATE TABLE IF NOT EXISTS device (
    place TEXT PRIMARY KEY NOT NULL,
    what TEXT NOT NULL
) STRICT, WITHOUT ROWID;";

/// The figures stand in columns of their own, so that SQLite counts them; the rest of an event
/// is JSON.
const TABLES: &str = "
CREATE TABLE place (
    name TEXT PRIMARY KEY NOT NULL,
    state TEXT NOT NULL,
    since_us INTEGER,
    why TEXT NOT NULL,
    passes INTEGER NOT NULL,
    failures INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    place TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    served INTEGER,
    passed INTEGER,
    cured INTEGER,
    flash_ms INTEGER,
    gaps INTEGER
) STRICT;
CREATE INDEX event_of_place ON event (place, seq);
CREATE INDEX event_in_time ON event (place, kind, at_us);
";
