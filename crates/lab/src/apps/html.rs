//! The links and forms of a page: as much of HTML as a crawler needs.

/// An element's start, such as `<a href="/">`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tag {
    /// In lower case; an end begins with `/`.
    name: String,
    attributes: Vec<(String, String)>,
    /// What follows it, up to the next tag.
    text: String,
}

impl Tag {
    fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A form as a page shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FormShown {
    /// Where it is sent to; empty: to the page itself.
    pub(super) action: String,
    /// Its attribute `id`.
    pub(super) id: String,
    /// What it sends as it stands.
    pub(super) fields: Vec<(String, String)>,
}

/// The addresses that a page's links name, in order.
pub(super) fn links(page: &str) -> Vec<String> {
    let tags = tags(page);
    let anchors = tags.iter().filter(|tag| tag.name == "a");
    anchors
        .filter_map(|tag| tag.attribute("href").map(str::to_owned))
        .collect()
}

/// A page's forms, in order.
pub(super) fn forms(page: &str) -> Vec<FormShown> {
    let mut forms: Vec<FormShown> = Vec::new();
    let mut inside = false;
    // The `<select>` whose options come now, and whether one of them was chosen.
    let mut choosing: Option<(String, bool)> = None;
    for tag in tags(page) {
        let value = |name: &str| tag.attribute(name).unwrap_or_default().to_owned();
        if tag.name == "form" {
            inside = true;
            forms.push(FormShown {
                action: value("action"),
                id: value("id"),
                fields: Vec::new(),
            });
        }
        let Some(form) = forms.last_mut().filter(|_| inside) else {
            continue;
        };
        match tag.name.as_str() {
            "/form" => inside = false,
            "input" if is_sent(&tag) => {
                let sent = match tag.attribute("type") {
                    Some("checkbox" | "radio") if tag.attribute("value").is_none() => "on".into(),
                    _ => value("value"),
                };
                form.fields.push((value("name"), sent));
            }
            "textarea" if tag.attribute("name").is_some() => {
                let text = tag.text.strip_prefix('\n').unwrap_or(&tag.text);
                form.fields.push((value("name"), unescaped(text)));
            }
            "select" => choosing = tag.attribute("name").map(|name| (name.to_owned(), false)),
            "/select" => choosing = None,
            "option" => {
                if let Some((name, is_chosen)) = &mut choosing {
                    let chosen = tag.attribute("selected").is_some();
                    if chosen && !*is_chosen {
                        *is_chosen = true;
                        form.fields.push((name.clone(), value("value")));
                    }
                }
            }
            _ => {}
        }
    }
    forms
}

/// Whether an `<input>` is sent with its form by whoever presses no button of a name.
fn is_sent(tag: &Tag) -> bool {
    let kind = tag.attribute("type").unwrap_or("text");
    let is_left_out = match kind {
        "submit" | "button" | "image" | "reset" | "file" => true,
        "checkbox" | "radio" => tag.attribute("checked").is_none(),
        _ => false,
    };
    tag.attribute("name").is_some_and(|name| !name.is_empty()) && !is_left_out
}

fn tags(page: &str) -> Vec<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let (text, from_tag) = rest.split_at(start);
        if let Some(last) = tags.last_mut() {
            last.text.push_str(text);
        }
        if let Some(comment) = from_tag.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let (tag, behind) = tag(&from_tag[1..]);
        rest = behind;
        // What a script holds is no HTML.
        if tag.name == "script" || tag.name == "style" {
            let end = format!("</{}", tag.name);
            rest = rest.find(&end).map_or("", |at| &rest[at..]);
        }
        tags.push(tag);
    }
    tags
}

/// The tag behind a `<`, and what is behind its `>`.
fn tag(text: &str) -> (Tag, &str) {
    let name_end = text
        .find(|c: char| c.is_ascii_whitespace() || c == '>')
        .unwrap_or(text.len());
    let (name, mut rest) = text.split_at(name_end);
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            break;
        }
        if let Some(behind) = rest.strip_prefix('>') {
            rest = behind;
            break;
        }
        let end = rest
            .find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '>')
            .unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let (value, behind) = attribute_value(behind);
        if end > 0 {
            attributes.push((name.to_ascii_lowercase(), unescaped(value)));
        }
        rest = behind;
    }
    let tag = Tag {
        name: name.trim_end_matches('/').to_ascii_lowercase(),
        attributes,
        text: String::new(),
    };
    (tag, rest)
}

/// The value behind an attribute's name, if it has one, and what is behind that.
fn attribute_value(text: &str) -> (&str, &str) {
    let Some(value) = text.trim_start().strip_prefix('=') else {
        return ("", text);
    };
    let value = value.trim_start();
    let quote = value.chars().next().filter(|&c| c == '"' || c == '\'');
    let Some(quote) = quote else {
        let end = value.find(|c: char| c.is_ascii_whitespace() || c == '>');
        return value.split_at(end.unwrap_or(value.len()));
    };
    let inside = &value[1..];
    match inside.find(quote) {
        Some(end) => (&inside[..end], &inside[end + 1..]),
        None => (inside, ""),
    }
}

/// A text without the references that stand for characters with a meaning of their own.
fn unescaped(text: &str) -> String {
    const REFERENCES: [(&str, &str); 9] = [
        ("&#038;", "&"),
        ("&#39;", "'"),
        ("&#039;", "'"),
        ("&#x27;", "'"),
        ("&#43;", "+"),
        ("&quot;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        // Last: what it makes is no reference any more.
        ("&amp;", "&"),
    ];
    let mut text = text.to_owned();
    for (reference, character) in REFERENCES {
        if text.contains('&') {
            text = text.replace(reference, character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_and_scripts_and_comments_are_not_read() {
        let page = "<!-- <a href='/no'> --><a class=x href=\"/a?b=1&amp;c=2\">A</a>\
                    <script>'<a href=\"/no\">'</script><A HREF=/b>B</A><a name=x>";
        assert_eq!(links(page), ["/a?b=1&c=2", "/b"]);
    }

    #[test]
    fn a_form_has_what_a_browser_would_send() {
        let page = "<form action='/send' id=f><input type=hidden name=token value='a&quot;b'>\
                    <input name=empty><input type=checkbox name=no><input type=submit name=go>\
                    <input type=checkbox name=yes checked>\
                    <textarea name=text>\nfirst &lt;b&gt;</textarea>\
                    <select name=s><option value=1><option value=2 selected></select></form>\
                    <input name=outside>";
        let fields = [
            ("token", "a\"b"),
            ("empty", ""),
            ("yes", "on"),
            ("text", "first <b>"),
            ("s", "2"),
        ];
        let expected = FormShown {
            action: "/send".into(),
            id: "f".into(),
            fields: fields.map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
        };
        assert_eq!(forms(page), [expected]);
    }

    #[test]
    fn no_text_makes_it_panic_or_go_on_for_ever() {
        for text in [
            "<",
            "<a",
            "<a href",
            "<a href=",
            "<a href='",
            "<!--",
            "<script>",
            "<>",
            "</",
        ] {
            links(text);
            forms(text);
        }
    }
}
