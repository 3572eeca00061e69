//! Connections to a program on another host over SSH.
