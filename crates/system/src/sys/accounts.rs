//! Names of the accounts of this machine, and of their groups.

/// The name of an account, or its number where `/etc/passwd` does not list it.
pub fn name(uid: u32) -> String {
    listed_name(uid).unwrap_or_else(|| format!("uid {uid}"))
}

/// The name of an account; `None` where `/etc/passwd` does not list it.
pub fn listed_name(uid: u32) -> Option<String> {
    let list = std::fs::read("/etc/passwd").unwrap_or_default();
    listed(&String::from_utf8_lossy(&list), uid)
}

/// The name of a group, or its number where `/etc/group` does not list it.
pub fn group(gid: u32) -> String {
    let list = std::fs::read("/etc/group").unwrap_or_default();
    listed(&String::from_utf8_lossy(&list), gid).unwrap_or_else(|| format!("gid {gid}"))
}

/// The number of a group of this name.
pub fn group_named(name: &str) -> Option<u32> {
    let list = std::fs::read("/etc/group").unwrap_or_default();
    numbered(&String::from_utf8_lossy(&list), name)
}

/// The name of an account or a group in the text of `/etc/passwd` or `/etc/group`:
/// `name:password:number:…`.
fn listed(list: &str, of: u32) -> Option<String> {
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == of).then(|| name.to_owned())
    })
}

/// The opposite.
fn numbered(list: &str, of: &str) -> Option<u32> {
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (name == of).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_named_by_its_number() {
        let list = "root:x:0:0:root:/root:/bin/bash\n# a comment\nbob:x:1001:100::/home/bob:/bin/sh\n:x:7\n";
        assert_eq!(listed(list, 1001).as_deref(), Some("bob"));
        assert_eq!(listed(list, 0).as_deref(), Some("root"));
        assert_eq!(listed(list, 7), None);
        assert_eq!((numbered(list, "bob"), numbered(list, "")), (Some(1001), None));
        assert_eq!(name(u32::MAX - 7), format!("uid {}", u32::MAX - 7));
    }
}
