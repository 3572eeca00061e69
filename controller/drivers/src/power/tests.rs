//! Tests of power devices without counterparts.
