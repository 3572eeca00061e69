//! Who asks, as the system of the rig's host knows it.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::net::IpAddr;

use jig_model::{Identity, IdentityName};
use nix::unistd::{Gid, Group, Uid, User, geteuid, getgrouplist};

use crate::store::host_name;

/// The variable in which OpenSSH's server tells its session where the client is.
const SSH_CONNECTION: &str = "SSH_CONNECTION";

/// Returns the identity of the user of this process.
pub fn own_identity() -> Identity {
    of_uid(geteuid())
}

/// Returns the identity of a user of this host.
pub fn of_uid(uid: Uid) -> Identity {
    let user = User::from_uid(uid).ok().flatten().map(|user| user.name);
    // A user without a name, or with one that cannot be told from another, is its number.
    let name = user.and_then(|user| IdentityName::unix(&user).ok());
    let name = name.or_else(|| IdentityName::unix(&uid.to_string()).ok());
    let unknown = Identity::default();
    Identity { name: name.unwrap_or(unknown.name), host: host_name(), from: None }
}

/// Returns the identity of a caller whom this host serves under a name.
pub fn named(name: IdentityName) -> Identity {
    Identity { name, host: host_name(), from: None }
}

/// Adds from where the SSH server of this host says that the caller has come.
#[must_use]
pub fn over_ssh(identity: Identity) -> Identity {
    let told = std::env::var(SSH_CONNECTION).ok();
    let address = told.as_deref().and_then(|told| told.split(' ').next()?.parse::<IpAddr>().ok());
    Identity { from: address.map(|address| address.to_string()), ..identity }
}

/// Lists the groups of a user of this host, by the host's directory; none of other identities.
pub fn groups_of(name: &IdentityName) -> BTreeSet<String> {
    let user = name.unix_user().and_then(|user| User::from_name(user).ok().flatten());
    let Some(user) = user else { return BTreeSet::new() };
    let Ok(text) = CString::new(user.name) else { return BTreeSet::new() };
    let groups = getgrouplist(&text, user.gid).unwrap_or_else(|_| vec![user.gid]);
    let name = |gid: Gid| Group::from_gid(gid).ok().flatten().map(|group| group.name);
    groups.into_iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_of_the_host_is_in_its_groups_and_a_key_is_in_none() {
        let own = own_identity();
        assert!(own.name.is_local() && !own.host.is_empty(), "{own}");
        let root = IdentityName::unix("root").unwrap();
        assert!(groups_of(&root).contains("root"), "{:?}", groups_of(&root));
        assert!(groups_of(&"root".parse().unwrap()).is_empty());
        assert!(groups_of(&IdentityName::unix("no-such-user").unwrap()).is_empty());
    }
}
