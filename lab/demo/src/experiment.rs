//! The experiment from its first request to its report.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::failure::{DemoFailure, DemoResult};
use crate::measure::{self, ArticleCost, CONNECTIONS, ChosenArticle, LoadComparison, Servers};
use crate::output::{ProgressLine, say};
use crate::show::{self, GrowingTable};

/// Programs and folders of the experiment.
pub(crate) struct Experiment<'a> {
    /// The servers that are compared.
    pub(crate) servers: Servers,
    /// The program that makes the load.
    pub(crate) millrace: &'a Path,
    /// Set when the experiment must end.
    pub(crate) stop: &'a AtomicBool,
}

impl Experiment<'_> {
    /// Measures, prints the tables, and writes the report. `about` says what the site consists of.
    pub(crate) fn run(
        &self,
        articles: &[ChosenArticle],
        about: &str,
        workers: usize,
        report: &Path,
    ) -> DemoResult {
        let costs = self.costs(articles)?;
        let comparisons = self.comparisons(articles[articles.len() / 2].id)?;
        let command = millrace_client::command_line("cargo demo");
        let html = show::report(&costs, &comparisons, about, workers, &command);
        let shown = report.display();
        fs::write(report, html)
            .map_err(|error| DemoFailure::new(format!("cannot write {shown}: {error}")))?;
        say(format_args!("The same with graphs: {shown}"));
        Ok(())
    }

    /// The cost of each article, printed as it is measured.
    fn costs(&self, articles: &[ChosenArticle]) -> DemoResult<Vec<ArticleCost>> {
        let progress = ProgressLine::new();
        let mut costs = Vec::new();
        let mut table = GrowingTable::start(&show::costs_table(&costs), show::TITLE);
        for (number, article) in (1..).zip(articles) {
            progress.show(format_args!(
                "article {number} of {}: {}",
                articles.len(),
                article.title
            ));
            let cost = measure::cost(self.servers, article, self.stop)?;
            progress.clear();
            costs.push(cost);
            table.grow(&show::costs_table(&costs));
        }
        say(format_args!("{}\n", show::costs_table(&costs).note));
        Ok(costs)
    }

    /// `/read` and `/brief` at each number of connections, printed as they are measured.
    fn comparisons(&self, article: usize) -> DemoResult<Vec<LoadComparison>> {
        let progress = ProgressLine::new();
        let mut comparisons = Vec::new();
        let head = show::comparisons_table(&comparisons);
        let mut table = GrowingTable::start(&head, measure::BRIEF.len());
        for (page, path) in [
            (measure::ARTICLE, format!("/read?id={article}")),
            (measure::BRIEF, format!("/brief?id={article}")),
        ] {
            for connections in CONNECTIONS {
                progress.show(format_args!(
                    "{} requests for {path}, {connections} at a time",
                    measure::REQUESTS
                ));
                let comparison = measure::compare(self, page, &path, connections)?;
                progress.clear();
                comparisons.push(comparison);
                table.grow(&show::comparisons_table(&comparisons));
            }
        }
        say(format_args!(
            "{}\n",
            show::comparisons_table(&comparisons).note
        ));
        Ok(comparisons)
    }
}
