//! Words of English and Chinese texts as they count for a purpose: stems, synonyms, what is done.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use super::text::is_han;

/// Deeds, each a list of verbs that mean it; a verb may mean several.
const DEEDS: &[&[&str]] = &[
    &[
        "get", "fetch", "retrieve", "read", "show", "view", "return", "give", "tell", "obtain", "display",
        "provide", "query", "lookup", "check", "find", "look", "获取", "读取", "查看", "显示", "得到",
        "返回", "提供", "查询", "查找", "检查", "查",
    ],
    &["search", "find", "seek", "query", "lookup", "look", "搜索", "搜寻", "检索", "查找", "查询", "搜"],
    &["list", "enumerate", "browse", "列出", "列举", "浏览", "罗列"],
    &["create", "add", "new", "insert", "register", "创建", "新建", "添加", "新增", "建立", "登记", "增加"],
    &["generate", "make", "produce", "draw", "生成", "制作", "绘制"],
    &["update", "edit", "modify", "change", "alter", "adjust", "更新", "修改", "编辑", "变更", "调整"],
    &["set", "configure", "设置", "配置", "设定"],
    &["delete", "remove", "erase", "clear", "destroy", "purge", "drop", "删除", "移除", "清除", "清空"],
    &["send", "deliver", "发送"],
    &["publish", "post", "announce", "发布", "发表"],
    &["notify", "alert", "remind", "通知", "提醒"],
    &["write", "save", "store", "写入", "保存", "存储"],
    &["cancel", "abort", "revoke", "取消", "撤销"],
    &["start", "launch", "begin", "启动", "开始"],
    &["stop", "halt", "end", "terminate", "停止", "结束", "终止"],
    &["run", "execute", "trigger", "运行", "执行"],
    &["restart", "rerun", "reboot", "重启"],
    &["open", "打开"],
    &["close", "关闭"],
    &["enable", "activate", "启用"],
    &["disable", "deactivate", "禁用", "停用"],
    &["upload", "上传"],
    &["download", "下载"],
    &["import", "导入"],
    &["export", "导出"],
    &["move", "rename", "移动", "重命名"],
    &["copy", "duplicate", "clone", "复制", "拷贝"],
    &["convert", "transform", "转换", "换算"],
    &["translate", "翻译"],
    &["summarize", "summarise", "summary", "总结", "摘要", "概括"],
    &["count", "统计", "计数"],
    &["calculate", "compute", "evaluate", "计算"],
    &["book", "reserve", "预订", "预约", "预定"],
    &["buy", "purchase", "购买"],
    &["sell", "出售", "卖出"],
    &["pay", "支付", "付款"],
    &["refund", "退款"],
    &["approve", "accept", "批准", "同意"],
    &["reject", "decline", "拒绝", "驳回"],
    &["assign", "分配", "指派"],
    &["merge", "combine", "join", "合并"],
    &["split", "拆分"],
    &["compare", "diff", "比较", "对比"],
    &["validate", "verify", "验证", "校验"],
    &["encrypt", "加密"],
    &["decrypt", "解密"],
    &["compress", "zip", "压缩"],
    &["extract", "unzip", "解压", "提取"],
    &["lock", "锁定"],
    &["unlock", "解锁"],
    &["subscribe", "订阅"],
    &["unsubscribe", "退订"],
    &["play", "播放"],
    &["pause", "暂停"],
    &["comment", "reply", "评论", "回复"],
];

/// Things, each a list of nouns that mean it; the first stands for all.
const THINGS: &[&[&str]] = &[
    &["information", "info", "detail", "data", "信息", "资料", "数据", "详情", "内容"],
    &["folder", "directory", "dir", "文件夹", "目录"],
    &["document", "doc", "文档"],
    &["email", "mail", "邮件", "电子邮件"],
    &["message", "msg", "消息", "短信"],
    &["picture", "image", "photo", "图片", "照片", "图像"],
    &["movie", "movies", "film", "电影", "影片"],
    &["price", "cost", "价格", "费用"],
    &["customer", "client", "客户", "顾客"],
    &["product", "goods", "商品", "产品"],
    &["shop", "商店", "店铺"],
    &["city", "town", "城市"],
    &["天气", "气象"],
    &["forecast", "预报"],
    &["url", "link", "链接", "网址"],
    &["phone", "telephone", "电话"],
    &["appointment", "meeting", "会议"],
    &["flight", "航班", "机票"],
    &["hotel", "酒店", "旅馆"],
    &["repository", "repo", "仓库"],
    &["status", "state", "progress", "状态", "进度"],
    &["file", "文件"],
    &["ticket", "工单"],
    &["current", "now", "today", "当前", "现在", "目前", "今天"],
    &["user", "用户"],
    &["news", "headline", "新闻"],
    &["stock", "股票"],
    &["word", "keyword", "关键词", "关键字"],
];

/// Words that say nothing about a purpose.
const STOP: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "all",
    "also",
    "an",
    "and",
    "any",
    "are",
    "as",
    "ask",
    "at",
    "based",
    "be",
    "been",
    "before",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can",
    "cannot",
    "do",
    "does",
    "each",
    "else",
    "every",
    "everything",
    "for",
    "from",
    "given",
    "has",
    "have",
    "how",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "let",
    "like",
    "many",
    "may",
    "more",
    "most",
    "much",
    "must",
    "need",
    "no",
    "not",
    "of",
    "on",
    "once",
    "one",
    "only",
    "optional",
    "optionally",
    "or",
    "other",
    "out",
    "over",
    "per",
    "please",
    "result",
    "say",
    "several",
    "should",
    "so",
    "some",
    "somebody",
    "someone",
    "something",
    "specific",
    "specified",
    "such",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "this",
    "those",
    "through",
    "to",
    "tool",
    "two",
    "under",
    "up",
    "use",
    "used",
    "using",
    "various",
    "very",
    "want",
    "was",
    "way",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "who",
    "whose",
    "will",
    "with",
    "within",
    "without",
    "you",
    "your",
];

const STOP_CHINESE: &[&str] = &[
    "的", "了", "和", "与", "或", "在", "是", "用于", "可以", "一个", "一些", "进行", "根据", "按照", "通过",
    "指定", "给定", "相关", "以及", "并", "等", "你", "我", "他", "它", "使用", "支持", "能够", "所有",
    "某个", "某些", "这个", "那个", "中", "把", "被", "对", "为", "从", "到", "让", "将", "时", "该", "其",
    "及", "每", "有", "想", "要", "会", "就", "都", "还", "工具", "帮助", "问", "说", "想要", "需要", "如果",
    "当",
];

/// What a verb that is done everywhere counts, and a noun that everything has.
pub(super) const GENERIC: f32 = 0.4;

/// What any other verb counts.
const DEED: f32 = 0.7;

/// What a word means.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Meaning {
    /// What stands for all that mean it.
    token: &'static str,
    /// Of which deeds it is the verb, a bit each.
    deeds: u64,
    weight: f32,
}

static MEANINGS: LazyLock<HashMap<String, Meaning>> = LazyLock::new(|| {
    let mut meanings: HashMap<String, Meaning> = HashMap::new();
    for things in THINGS {
        let token = things[0];
        let weight = if matches!(token, "information" | "current") { GENERIC } else { 1.0 };
        meanings.extend(things.iter().map(|word| (key(word), Meaning { token, deeds: 0, weight })));
    }
    for (number, verbs) in DEEDS.iter().enumerate() {
        // To get, to search and to list are alike as words, and differ as deeds.
        let (token, weight) = if number < 3 { (DEEDS[0][0], GENERIC) } else { (verbs[0], DEED) };
        for verb in *verbs {
            let meaning = meanings.entry(key(verb)).or_insert(Meaning { token, deeds: 0, weight });
            meaning.deeds |= 1 << number;
        }
    }
    meanings
});

/// The Chinese words that are known, by their first character, longest first.
static CHINESE: LazyLock<HashMap<char, Vec<&'static str>>> = LazyLock::new(|| {
    let all = DEEDS.iter().chain(THINGS).flat_map(|words| words.iter()).chain(STOP_CHINESE);
    let mut words: HashMap<char, Vec<&'static str>> = HashMap::new();
    for word in all.filter(|word| word.chars().all(is_han)) {
        words.entry(word.chars().next().unwrap_or_default()).or_default().push(word);
    }
    words.values_mut().for_each(|words| words.sort_by_key(|word| std::cmp::Reverse(word.len())));
    words
});

/// A word as it stands in a text, and what it counts as.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub(super) token: String,
    /// As it is written, in lower case.
    pub(super) written: String,
    pub(super) deeds: u64,
    pub(super) weight: f32,
}

/// The words of a text that say something, in order.
pub(super) fn words_of(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut latin = String::new();
    let mut han: Vec<char> = Vec::new();
    // A space ends what is open at the end, too.
    for character in text.chars().chain([' ']) {
        if is_han(character) {
            english(&mut latin, &mut words);
            han.push(character);
            continue;
        }
        chinese(&mut han, &mut words);
        if character.is_alphanumeric() {
            latin.extend(character.to_lowercase());
        } else if character != '\'' && character != '’' {
            english(&mut latin, &mut words);
        }
    }
    words
}

fn english(open: &mut String, words: &mut Vec<Word>) {
    let written = std::mem::take(open);
    let is_number = written.chars().all(|character| character.is_ascii_digit());
    if written.len() < 2 || is_number || STOP.contains(&written.as_str()) {
        return;
    }
    let stem = stem(&written);
    words.push(match MEANINGS.get(&stem) {
        Some(meaning) => known(meaning, written),
        None => Word { token: stem, written, deeds: 0, weight: 1.0 },
    });
}

fn known(meaning: &Meaning, written: String) -> Word {
    Word { token: meaning.token.to_owned(), written, deeds: meaning.deeds, weight: meaning.weight }
}

/// Known words are taken out; what is left between them counts by its pairs of characters.
fn chinese(open: &mut Vec<char>, words: &mut Vec<Word>) {
    let run = std::mem::take(open);
    let mut unknown: Vec<char> = Vec::new();
    let mut at = 0;
    while at < run.len() {
        let starts_here =
            |word: &&&str| run[at..].iter().copied().take(word.chars().count()).eq(word.chars());
        match CHINESE.get(&run[at]).and_then(|known| known.iter().find(starts_here)) {
            Some(word) => {
                pairs(&mut unknown, words);
                if let Some(meaning) = MEANINGS.get(*word) {
                    words.push(known(meaning, (*word).to_owned()));
                }
                at += word.chars().count();
            }
            None => {
                unknown.push(run[at]);
                at += 1;
            }
        }
    }
    pairs(&mut unknown, words);
}

fn pairs(open: &mut Vec<char>, words: &mut Vec<Word>) {
    let run = std::mem::take(open);
    // A word has two characters mostly: of a longer run about every second pair is one.
    let weight = if run.len() < 3 { 1.0 } else { run.len() as f32 / (2.0 * (run.len() - 1) as f32) };
    let mut push = |token: String| words.push(Word { written: token.clone(), token, deeds: 0, weight });
    match run.as_slice() {
        [] => {}
        [one] => push(one.to_string()),
        run => run.windows(2).for_each(|pair| push(pair.iter().collect())),
    }
}

fn key(word: &str) -> String {
    if word.is_ascii() { stem(word) } else { word.to_owned() }
}

/// The stem of an English word: plural, -ing and -ed gone, and a last -e with them.
pub(super) fn stem(word: &str) -> String {
    let strip = |end: &str, least: usize| word.strip_suffix(end).filter(|rest| rest.len() >= least);
    if let Some(rest) = strip("ies", 2) {
        return format!("{rest}y");
    }
    let doubled = |rest: &str| {
        let mut last = rest.chars().rev();
        match (last.next(), last.next()) {
            // As in getting; but not in calling or passing.
            (Some(one), Some(two)) if one == two && !matches!(one, 'l' | 's' | 'e' | 'o') => {
                rest[..rest.len() - 1].to_owned()
            }
            _ => rest.to_owned(),
        }
    };
    let bare = if let Some(rest) = strip("ing", 3).or_else(|| strip("ed", 3)) {
        doubled(rest)
    } else if let Some(rest) = ["ches", "shes", "sses", "xes", "zes"]
        .iter()
        .find_map(|end| strip(end, 1).map(|_| &word[..word.len() - 2]))
    {
        rest.to_owned()
    } else {
        let plural = word.len() > 3
            && word.ends_with('s')
            && !["ss", "us", "is"].iter().any(|end| word.ends_with(end))
            && word != "news";
        if plural { word[..word.len() - 1].to_owned() } else { word.to_owned() }
    };
    match bare.strip_suffix('e') {
        Some(rest) if rest.len() >= 3 => rest.to_owned(),
        _ => bare,
    }
}

/// Words by what they count as; what is written first counts as its writing.
pub(super) fn by_token(words: Vec<Word>) -> BTreeMap<String, Word> {
    let mut tokens = BTreeMap::new();
    for word in words {
        tokens.entry(word.token.clone()).or_insert(word);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        words_of(text).into_iter().map(|word| word.token).collect()
    }

    #[test]
    fn english_words_are_stemmed_and_known_ones_unified() {
        assert_eq!(tokens("Searches for files in a directory"), ["get", "file", "folder"]);
        assert_eq!(tokens("look_up info"), ["get", "information"]);
        assert_eq!(tokens("creating the user's pictures, 42 of them"), ["create", "user", "picture"]);
        for (one, other) in [
            ("cities", "city"),
            ("creates", "creating"),
            ("boxes", "box"),
            ("getting", "gets"),
            ("filed", "files"),
        ] {
            assert_eq!(stem(one), stem(other), "{one} {other}");
        }
        for (one, other) in [("new", "news"), ("status", "statu"), ("class", "clas")] {
            assert_ne!(stem(one), stem(other), "{one} {other}");
        }
    }

    #[test]
    fn chinese_is_cut_at_known_words_and_else_in_pairs() {
        assert_eq!(tokens("搜索文件"), ["get", "file"]);
        assert_eq!(tokens("查找文件"), ["get", "file"]);
        assert_eq!(tokens("用于查询北京的天气预报"), ["get", "北京", "天气", "forecast"]);
        assert_eq!(tokens("审批流程"), ["审批", "批流", "流程"]);
        assert_eq!(tokens("查PDF文件"), ["get", "pdf", "file"]);
    }

    #[test]
    fn every_verb_has_its_deed_and_fits_a_bit() {
        assert!(DEEDS.len() < 64);
        let find = words_of("find").remove(0);
        let (get, search, list) =
            (words_of("fetch").remove(0), words_of("search").remove(0), words_of("list").remove(0));
        assert!(
            find.deeds & get.deeds != 0 && find.deeds & search.deeds != 0 && find.deeds & list.deeds == 0
        );
        assert_eq!(get.deeds & search.deeds, 0);
    }
}
