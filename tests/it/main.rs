//! The one integration binary: the `jig` program as its users meet it.
//!
//! Every test runs the real program, most of them on emulated boards, in folders of its
//! own ([`workshop`]). Nothing here waits for a time to pass: each wait is for a thing, and
//! its deadline matters only when the test fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a panic is a test's report"
)]

mod access;
mod ask;
mod ask_beyond;
mod ask_late;
mod ask_models;
mod bad_input;
mod board;
mod boot_loaders;
mod callers;
mod capture_service;
mod chip_verbs;
mod chips;
mod ci;
mod cli;
mod console;
mod console_attach;
mod console_loss;
mod coverage;
mod crowd;
mod dice;
mod explain;
mod fixtures;
mod flasher_volumes;
mod flashers;
mod formats;
mod full_disk;
mod health;
mod hold;
mod hold_parts;
mod hub;
mod hunt;
mod inject;
mod inject_transport;
mod junit;
mod knowledge;
mod known_good;
mod lab;
mod ladder;
mod learning;
mod leases;
mod linux;
mod machine_service;
mod manifest;
mod mcp;
mod metrics;
mod module_tree;
mod nothing_left;
mod offline;
mod own_service;
mod package;
mod parts;
mod plans;
mod power;
mod power_lab;
mod power_redfish;
mod power_transport;
mod probe_chance;
mod probe_endurance;
mod probe_faults;
mod probe_flash;
mod probe_gdb;
mod probe_gone;
mod probe_rtt;
mod probe_runs;
mod probe_verbs;
mod programs;
mod recovery;
mod reenumeration;
mod remote;
mod remote_attach;
mod remote_drops;
mod remote_hostile;
mod remote_kills;
mod remote_knowledge;
mod remote_shell;
mod remote_views;
mod repair_board;
mod repair_clients;
mod repair_control;
mod repair_diagnosis;
mod repair_faults;
mod repair_forged;
mod repair_guard;
mod repair_hostile;
mod repair_http;
mod repair_kills;
mod repair_loop;
mod repair_project;
mod repair_projects;
mod repair_ranks;
mod repair_runs;
mod sandbox;
mod serial;
mod serve;
mod served;
mod shell;
mod ssh;
mod ssh_pipe;
mod sshd;
mod stranger;
mod tidy;
mod top;
mod worker;
mod workshop;
