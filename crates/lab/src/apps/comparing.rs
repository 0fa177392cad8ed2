//! Whether pages are the same directly and through Remora.

use super::bed::{Bed, Way};
use super::http::Browser;
use super::site::Site;

/// What came of comparing pages.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// The same in both, but for lines that change from one time to the next.
    pub(super) equal: usize,
    /// Those of them that were the same only when they were fetched once more: a change was on its
    /// way, or the page is another each time.
    pub(super) equal_later: usize,
    /// Pages of which nothing can be said: directly they have another number of lines each time.
    pub(super) unsteady: usize,
    /// Others: the path, and what differs.
    pub(super) different: Vec<String>,
}

impl Compared {
    /// Adds what came of another comparison.
    pub(super) fn add(&mut self, other: Compared) {
        self.equal += other.equal;
        self.equal_later += other.equal_later;
        self.unsteady += other.unsteady;
        self.different.extend(other.different);
    }
}

/// What three copies of a page say: two that came directly, the second after the one in question.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Equal,
    Unsteady,
    /// The first line that differs, of a direct copy and of the other.
    Different(String, String),
}

/// Fetches each of these pages directly, through Remora, and directly again, for one and the same
/// person, while nobody writes.
pub(super) fn compare(bed: &Bed, site: &Site<'_>, pages_max: usize) -> anyhow::Result<Compared> {
    let mut browser = Browser::new()?;
    site.log_in(&mut browser, bed.web(Way::Direct))?;
    bed.catch_up()?;
    let mut compared = Compared::default();
    for path in site.pages.iter().take(pages_max) {
        let mask = &site.application.mask;
        let mut fetch = |way| {
            let page = browser.get(bed.web(way), path)?;
            Ok::<_, anyhow::Error>(masked(&page.body, mask))
        };
        let mut judge = || {
            let first = fetch(Way::Direct)?;
            let through = fetch(Way::Remora)?;
            Ok::<_, anyhow::Error>(verdict(&first, &through, &fetch(Way::Direct)?))
        };
        match judge()? {
            Verdict::Equal => compared.equal += 1,
            Verdict::Unsteady => compared.unsteady += 1,
            Verdict::Different(..) => match judge()? {
                Verdict::Equal => {
                    compared.equal += 1;
                    compared.equal_later += 1;
                }
                Verdict::Unsteady => compared.unsteady += 1,
                Verdict::Different(direct, through) => compared.different.push(format!(
                    "{path}: directly {direct:?}, through Remora {through:?}"
                )),
            },
        }
    }
    Ok(compared)
}

/// A page without what such lines say.
fn masked(page: &str, mask: &[String]) -> String {
    let shown = |line| {
        let is_masked = mask.iter().any(|part| str::contains(line, part.as_str()));
        if is_masked { "" } else { line }
    };
    page.lines().map(shown).collect::<Vec<_>>().join("\n")
}

fn verdict(first: &str, through: &str, second: &str) -> Verdict {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (first, through, second) = (lines(first), lines(through), lines(second));
    if first.len() != second.len() {
        return Verdict::Unsteady;
    }
    if first.len() != through.len() {
        let lengths = (first.len(), through.len());
        return Verdict::Different(
            format!("{} lines", lengths.0),
            format!("{} lines", lengths.1),
        );
    }
    let steady = first.iter().zip(&second).zip(&through);
    let different = steady
        .filter(|((first, second), _)| first == second)
        .find(|((first, _), through)| first != through);
    match different {
        None => Verdict::Equal,
        Some(((first, _), through)) => Verdict::Different(first.clone(), through.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_stay_the_same_directly_are_compared() {
        assert_eq!(verdict("a\nnow 1", "a\nnow 2", "a\nnow 3"), Verdict::Equal);
        assert_eq!(verdict("a\nb", "a", "a"), Verdict::Unsteady);
        let different = |a: &str, b: &str| Verdict::Different(a.to_owned(), b.to_owned());
        assert_eq!(verdict("a\nb", "a\nc", "a\nb"), different("b", "c"));
        assert_eq!(
            verdict("a\nb", "a", "a\nb"),
            different("2 lines", "1 lines")
        );
    }
}
