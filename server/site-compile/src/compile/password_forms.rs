//! Forms that would send a password in an address.

use crate::{form_tags::forms, markup::without_comments, template};
use millpond_site_format::{
    Problem,
    folder::Folder,
    secret_names::{is_of_something, is_password},
};

/// Finds the forms that send passwords in addresses, in all templates of a folder. An address is
/// kept in histories and logs.
pub(super) fn in_addresses(folder: &Folder) -> Vec<Problem> {
    let own = folder.pages.iter();
    let own = own.filter(|(name, _)| name.ends_with(".html"));
    let own = own.map(|(name, text)| (format!("pages/{name}"), &*text.text));
    let shared = folder.templates.iter();
    let shared = shared.map(|(name, text)| (template::file_of(name), &**text));
    let mut problems = Vec::new();
    for (file, text) in own.chain(shared) {
        let text = &without_comments(text);
        for form in forms(text) {
            let password = form.password(|name| is_password(name) && !is_of_something(name));
            if let Some(name) = password.filter(|_| form.method == "get") {
                let message = format!("this form sends `{name}` in the address, as GET does");
                let problem = Problem::new(&file, message).at_offset(text, form.at);
                problems.push(problem.hint(
                    "write <form method=\"post\" …>: addresses are kept in histories and logs",
                ));
            }
        }
    }
    problems
}
