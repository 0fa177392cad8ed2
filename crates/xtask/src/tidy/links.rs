//! Links between the repository's pages lead to files that it has, and to headings that these have.
//! Links to other hosts aren't followed. A heading's anchor is made as GitHub makes it.

use super::Violation;
use super::repository::{File, Repository};

/// A link, and the line in which it stands.
type Link<'a> = (usize, &'a str);

/// Finds the links that lead nowhere.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let pages = repository
        .files
        .iter()
        .filter(|file| file.has_extension("md"));
    let mut found = Vec::new();
    for page in pages {
        for (line, link) in links(page) {
            if let Some(what) = fault(repository, page, link) {
                let remedy = "correct it, or take it away";
                found.push(Violation::new(&page.path, line, what, remedy));
            }
        }
    }
    found
}

/// Why a link leads nowhere.
fn fault(repository: &Repository, page: &File, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.path.clone(),
        _ => match resolved(&page.path, path) {
            Some(target) => target,
            None => return Some(format!("the link '{link}' leads out of the repository")),
        },
    };
    if !repository.has(&target) {
        return Some(format!(
            "the link '{link}' leads to '{target}', and there is none"
        ));
    }
    let file = repository.file(&target)?;
    let is_known = anchor.is_empty()
        || !file.has_extension("md")
        || anchors(file).iter().any(|known| known == anchor);
    (!is_known).then(|| format!("'{target}' has no heading '#{anchor}'"))
}

/// A path as seen from a page, from the root; `None` if it isn't below it.
fn resolved(page: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            "" => return None,
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The page's lines that aren't within a block of code.
fn prose(page: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    page.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The links to places in the repository.
fn links(page: &File) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (number, line) in prose(page) {
        let definition = line.trim_start().strip_prefix('[');
        let definition = definition.and_then(|rest| rest.split_once("]: "));
        let targets = between(line, "](", ')')
            .into_iter()
            .chain(between(line, "src=\"", '"'))
            .chain(between(line, "href=\"", '"'))
            .chain(definition.map(|(_, target)| target));
        // A title may follow.
        let targets = targets.filter_map(|target| target.split_whitespace().next());
        let targets = targets.filter(|target| !target.contains("://"));
        let targets = targets.filter(|target| !target.starts_with("mailto:"));
        links.extend(targets.map(|target| (number, target)));
    }
    links
}

/// What stands between a beginning and an end, outside of code.
fn between<'a>(line: &'a str, begin: &str, end: char) -> Vec<&'a str> {
    let is_in_code = |at: usize| line[..at].matches('`').count() % 2 == 1;
    line.match_indices(begin)
        .filter(|(at, _)| !is_in_code(*at))
        .filter_map(|(at, _)| line[at + begin.len()..].split_once(end))
        .map(|(target, _)| target)
        .collect()
}

/// To what in a page a link can lead: its headings, and its `id`s.
fn anchors(page: &File) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(page) {
        anchors.extend(between(line, " id=\"", '"').into_iter().map(str::to_owned));
        let heading = line.trim_start_matches('#');
        if line.starts_with('#') && heading.starts_with(' ') {
            let anchor = anchor(heading.trim());
            let same = (0..=anchors.len())
                .map(|count| match count {
                    0 => anchor.clone(),
                    _ => format!("{anchor}-{count}"),
                })
                .find(|one| !anchors.contains(one));
            anchors.extend(same);
        }
    }
    anchors
}

/// In small letters, `-` for each blank, without other signs; of a link its text only.
fn anchor(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text.chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "docs/a.md";

    fn found(text: &str) -> Vec<String> {
        let other = "# Other\n## `a.b` and [c](a.md)\n## Twice\n## Twice\n<a id=\"here\"></a>";
        let files = [(PAGE, text), ("docs/b.md", other), ("src/c.rs", "")];
        let found = violations(&Repository::of(&files));
        found.into_iter().map(|one| one.what).collect()
    }

    #[test]
    fn links_to_what_is_there_are_right() {
        let found = found(
            "# It's `A`: 1\n[a](b.md) ![b](../src/c.rs) [c](../src/) [d](#its-a-1)\n\
             [e](b.md#ab-and-c) [f](b.md#twice-1) [g](b.md#here) [h](../src/c.rs#L1)\n\
             [i]: b.md\n[j](https://a.example/b) `[k](l)` <a href=\"b.md\">\n\
             ```\n[m](n)\n# o\n```\n",
        );
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for text in [
            "[a](c.md)",
            "[a](../b.md \"A title\")",
            "[a](../../b.md)",
            "[a](/docs/b.md)",
            "[a](#b)",
            "[a](b.md#three-times)",
            "[a](b.md#twice-2)",
            "[a]: c.md",
            "<img src=\"c.png\">",
            "```\n# b\n```\n[a](#b)",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
    }
}
