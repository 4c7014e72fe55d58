//! How a person makes browsers trust the local authority.

use std::path::Path;

/// Lines for a terminal: how Chromium, Firefox and the system's own programs come to trust the
/// authority whose certificate is at `authority`, for a server on `port`.
#[must_use]
pub fn trust_instructions(authority: &Path, port: u16) -> Vec<String> {
    let path = shell_word(authority);
    let name = "'Millpond local authority'";
    let lines = [
        "Browsers do not know this authority yet. It can sign for localhost only.".to_owned(),
        format!(
            "Once this command has run, Chromium and Chrome show https://localhost:{port} without a warning"
        ),
        "(certutil is in the package libnss3-tools or nss-tools):".to_owned(),
        format!(
            "  mkdir -p ~/.pki/nssdb && certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n {name} -i {path}"
        ),
        "Firefox, with its profile's folder (about:profiles shows it):".to_owned(),
        format!("  certutil -d sql:PROFILE -A -t C,, -n {name} -i {path}"),
        "curl and other programs, on Debian and Ubuntu:".to_owned(),
        format!("  sudo cp {path} /usr/local/share/ca-certificates/millpond-local.crt"),
        "  sudo update-ca-certificates".to_owned(),
        "curl and other programs, on Fedora:".to_owned(),
        format!("  sudo cp {path} /etc/pki/ca-trust/source/anchors/millpond-local.pem"),
        "  sudo update-ca-trust".to_owned(),
        "curl, without any of this:".to_owned(),
        format!("  curl --cacert {path} https://localhost:{port}/"),
    ];
    lines.into()
}

/// A path as one word of a shell's command.
#[must_use]
pub fn shell_word(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::trust_instructions;

    #[test]
    fn each_command_names_the_file_as_one_word() {
        let lines = trust_instructions(Path::new("/var/my site's/authority.pem"), 8443);
        let commands = lines.iter().filter(|line| line.contains(".pem'"));
        assert!(commands.clone().count() == 5, "{lines:#?}");
        for command in commands {
            assert!(command.contains(r"'/var/my site'\''s/authority.pem'"));
        }
    }
}
