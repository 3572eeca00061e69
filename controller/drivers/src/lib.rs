//! One module per kind of real-world thing.
