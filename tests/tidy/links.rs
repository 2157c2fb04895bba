//! Links between the pages lead somewhere, to the very heading they name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{Findings, files_below, root};

/// Every page of the repository.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = ["docs", "protocol", "runtime", "plugin-sdk", "example-plugins", "tests"]
        .iter()
        .flat_map(|folder| files_below(folder))
        .collect();
    let top = std::fs::read_dir(root()).expect("the repository can be read");
    pages.extend(top.map(|entry| entry.expect("readable").path()));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages
}

/// The lines of a page outside its code blocks, numbered from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The targets of the links in a line; what stands in backticks is no link.
fn targets(line: &str) -> Vec<String> {
    let outside: String =
        line.split('`').enumerate().map(|(index, part)| if index % 2 == 0 { part } else { "" }).collect();
    let starts: Vec<usize> = outside.match_indices("](").map(|(at, _)| at + 2).collect();
    let target = |at: usize| outside[at..].split_once(')').map(|(target, _)| target.to_owned());
    starts.into_iter().filter_map(target).collect()
}

/// The name a heading is linked by.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept =
        text.chars().filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'));
    kept.map(|character| if character == ' ' { '-' } else { character }).collect()
}

fn anchors(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page can be read");
    prose(&text).iter().filter(|(_, line)| line.starts_with('#')).map(|(_, line)| anchor(line)).collect()
}

#[test]
fn internal_links_lead_somewhere() {
    let mut findings = Findings::of("links between pages resolve");
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        for (line, content) in prose(&text) {
            for target in targets(content) {
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (path, fragment) = target.split_once('#').unwrap_or((&target, ""));
                let linked = if path.is_empty() {
                    page.clone()
                } else {
                    page.parent().expect("in a folder").join(path)
                };
                if !linked.exists() {
                    findings.at(&page, line, format!("leads to {target}, which does not exist"));
                } else if !fragment.is_empty() && !anchors(&linked).iter().any(|known| known == fragment) {
                    findings.at(&page, line, format!("leads to {target}, which has no such heading"));
                }
            }
        }
    }
    findings.none();
}

#[test]
fn a_link_in_backticks_is_text() {
    assert_eq!(targets("see [a](b.md#c) and `[d](e)`, [f](g)"), ["b.md#c", "g"]);
    assert_eq!(anchor("## 3. Errors and `data`"), "3-errors-and-data");
}

/// What a page and its translation have in common: headings by depth, code, and where links lead.
fn skeleton(page: &str) -> (Vec<String>, Vec<String>, BTreeSet<String>) {
    let text = std::fs::read_to_string(root().join(page)).expect("the page is there");
    let code = text.split("```").skip(1).step_by(2).map(str::to_owned).collect();
    let prose = prose(&text);
    let depth = |line: &str| line.chars().take_while(|letter| *letter == '#').collect::<String>();
    let headings = prose.iter().map(|(_, line)| depth(line)).filter(|depth| !depth.is_empty()).collect();
    let links = prose.iter().flat_map(|(_, line)| targets(line));
    (headings, code, links.filter(|target| !target.starts_with("README")).collect())
}

#[test]
fn the_chinese_readme_keeps_step_with_the_english_one() {
    let (headings, code, links) = skeleton("README.md");
    let (headings_zh, code_zh, links_zh) = skeleton("README.zh-CN.md");
    assert_eq!(headings_zh, headings, "the same sections");
    assert_eq!(code_zh, code, "the same code, byte for byte");
    assert_eq!(links_zh, links, "the same links");
}
