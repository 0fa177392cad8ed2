//! The pages of an application, found by following links, and what its clients do with them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, bail};
use remora_testkit::load::random::Random;

use super::description::{Application, Form};
use super::html::{self, FormShown};
use super::http::{Browser, Page, path_of};

/// An application's pages.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) application: &'a Application,
    /// In a random order, the first the most wanted.
    pub(super) pages: Vec<String>,
    /// For each of the application's forms, the pages that have it.
    with_form: Vec<Vec<String>>,
    /// Numbers that are never the same.
    numbers: AtomicU64,
}

impl<'a> Site<'a> {
    /// Follows links from where the application starts until it has found so many pages, or all.
    ///
    /// # Errors
    /// The application doesn't answer, or one of its forms is nowhere.
    pub(super) fn explore(
        application: &'a Application,
        address: SocketAddr,
        pages_max: usize,
        random: &mut Random,
    ) -> anyhow::Result<Site<'a>> {
        let mut site = Site {
            application,
            pages: Vec::new(),
            with_form: vec![Vec::new(); application.write.len()],
            numbers: AtomicU64::new(1),
        };
        let mut browser = Browser::new()?;
        if application.everybody_logs_in {
            site.log_in(&mut browser, address)?;
        }
        let mut known: BTreeSet<String> = application.start.iter().cloned().collect();
        let mut left: VecDeque<String> = application.start.iter().cloned().collect();
        while let Some(path) = left.pop_front() {
            if site.pages.len() == pages_max {
                break;
            }
            let page = browser.get(address, &path)?;
            page.check()?;
            // What isn't there for this client, or stands in for something else, is no page.
            if page.status != 200 || (page.path != path && known.contains(&page.path)) {
                continue;
            }
            site.note_forms(&page);
            for link in html::links(&page.body) {
                let Some(path) = path_of(&page.path, &link) else {
                    continue;
                };
                let is_skipped = application.skip.iter().any(|part| path.contains(part));
                if !is_skipped && known.insert(path.clone()) {
                    left.push_back(path);
                }
            }
            site.pages.push(path);
        }
        site.check()?;
        shuffle(&mut site.pages, random);
        Ok(site)
    }

    fn note_forms(&mut self, page: &Page) {
        let shown = html::forms(&page.body);
        for (form, pages) in self.application.write.iter().zip(&mut self.with_form) {
            if form.page.is_none() && shown.iter().any(|shown| is_it(form, shown)) {
                pages.push(page.path.clone());
            }
        }
    }

    fn check(&mut self) -> anyhow::Result<()> {
        let name = &self.application.name;
        if self.pages.len() < 2 {
            bail!("{name} has only {} page", self.pages.len());
        }
        for (form, pages) in self.application.write.iter().zip(&mut self.with_form) {
            pages.extend(form.page.clone());
            if pages.is_empty() {
                bail!("{name}: no page has the form for {}", form.name);
            }
        }
        Ok(())
    }

    /// Logs in.
    pub(super) fn log_in(&self, browser: &mut Browser, address: SocketAddr) -> anyhow::Result<()> {
        let Some(form) = &self.application.login else {
            return Ok(());
        };
        let page = form.page.as_deref().context("a login needs a page")?;
        self.send(browser, address, form, page)?;
        let page = browser.get(address, page)?;
        let asks_again = html::forms(&page.body).iter().any(|shown| {
            let is_password = |(name, _): &(String, String)| name.contains("password");
            is_it(form, shown) && shown.fields.iter().any(is_password)
        });
        if asks_again {
            bail!("{} refused the login", self.application.name);
        }
        Ok(())
    }

    /// Writes something.
    pub(super) fn write(
        &self,
        browser: &mut Browser,
        address: SocketAddr,
        random: &mut Random,
    ) -> anyhow::Result<()> {
        let which = random.below(self.application.write.len());
        let pages = &self.with_form[which];
        let page = &pages[random.below(pages.len())];
        self.send(browser, address, &self.application.write[which], page)
    }

    /// Opens the page with a form, fills it in and sends it.
    fn send(
        &self,
        browser: &mut Browser,
        address: SocketAddr,
        form: &Form,
        path: &str,
    ) -> anyhow::Result<()> {
        let what = &form.name;
        let page = browser.get(address, path)?;
        let shown = html::forms(&page.body);
        let shown = shown.iter().find(|shown| is_it(form, shown));
        let shown = shown
            .with_context(|| format!("{path} (status {}) has no form for {what}", page.status))?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed).to_string();
        let values: BTreeMap<String, String> = form
            .fields
            .iter()
            .map(|(name, value)| (name.clone(), value.replace("{n}", &number)))
            .collect();
        let answer = browser.submit(address, &page.path, shown, &values)?;
        if answer.status >= 400 {
            let beginning: String = answer.body.chars().take(500).collect();
            bail!(
                "{what}, sent from {path}: status {}: {beginning}",
                answer.status
            );
        }
        Ok(())
    }
}

fn is_it(form: &Form, shown: &FormShown) -> bool {
    shown.action.contains(&form.marker) || shown.id == form.marker
}

fn shuffle(pages: &mut [String], random: &mut Random) {
    for last in (1..pages.len()).rev() {
        pages.swap(last, random.below(last + 1));
    }
}
