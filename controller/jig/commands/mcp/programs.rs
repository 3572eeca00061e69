//! Servers of tools as programs of this host: how they are started, and what they get.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;

use jig_drivers::process::{ManagedProcess, SpawnRequest};
use jig_model::protocol::{BoxFuture, NoLedger};
use jig_model::{Fault, chain};
use jig_operator::error::{OperatorCode, OperatorError};
use jig_operator::mcp::{McpPipe, McpPrograms, McpServerConfig, McpToolDoor};
use tokio::net::UnixStream;

use crate::failure::Failure;

/// Variables that each program gets: without them few programs start.
const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// Reads the tables `[mcp.NAME]` of the file that `origin` names, and binds the servers. None is started
/// before a tool of it is needed.
pub(crate) fn other_servers(
    origin: &str,
    tables: BTreeMap<String, toml::Table>,
) -> Result<McpToolDoor, Failure> {
    let mut servers = BTreeMap::new();
    for (name, table) in tables {
        let wrong = |why: &str| {
            Failure::new(Fault::Profile, format!("{origin}: [mcp.{name}]: {why}"))
                .help("see the page on agents and editors of the guide: controller/guide/mcp.md")
        };
        let config: McpServerConfig =
            table.try_into().map_err(|error: toml::de::Error| wrong(error.message()))?;
        if config.command.is_empty() {
            return Err(wrong("`command` names no program"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || name.len() > 24 || !name.chars().all(fits) {
            return Err(wrong("a name has letters, digits and `-`, 24 at most"));
        }
        servers.insert(name, config);
    }
    let programs: Arc<dyn McpPrograms> = Arc::new(HostPrograms);
    Ok(McpToolDoor::new(servers, &programs))
}

/// Starts servers as children of this process, which end with it.
struct HostPrograms;

impl McpPrograms for HostPrograms {
    fn start(
        &self,
        name: &str,
        config: &McpServerConfig,
    ) -> BoxFuture<'_, Result<McpPipe, OperatorError>> {
        let (name, config) = (name.to_owned(), config.clone());
        Box::pin(async move {
            start(&config).await.map_err(|why| {
                OperatorError::new(OperatorCode::Io, format!("MCP server {name}: {why}"))
                    .next(format!("try it by hand: {}", config.command.join(" ")))
            })
        })
    }
}

async fn start(config: &McpServerConfig) -> Result<McpPipe, String> {
    let said = |error: io::Error| error.to_string();
    let (near, far) = StdStream::pair().map_err(said)?;
    near.set_nonblocking(true).map_err(said)?;
    let output = far.try_clone().map_err(said)?;
    let mut words = config.command.iter().map(OsString::from);
    let passed = ENVIRONMENT.into_iter().chain(config.pass_env.iter().map(String::as_str));
    let env = passed.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let request = SpawnRequest {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        cwd: None,
        env: Some(env.collect()),
        stdin: Some(File::from(OwnedFd::from(far))),
        stdout: Some(File::from(OwnedFd::from(output))),
        // What it says there is for people who run it by hand.
        stderr: None,
        inherit: Vec::new(),
        exits_for_target: false,
        ends_itself: false,
        what: "mcp server".to_owned(),
    };
    let process = ManagedProcess::spawn(request, Arc::new(NoLedger)).await;
    let process = process.map_err(|error| chain(&error))?;
    let (from, to) = UnixStream::from_std(near).map_err(said)?.into_split();
    Ok(McpPipe { from: Box::pin(from), to: Box::pin(to), process: Box::new(process) })
}
