//! Whole lists of tools: real-looking ones that differ, and pairs that say the same.

use super::*;

/// Tools that do different things, many of them in the same words.
const DIFFERENT: &[(&str, &str)] = &[
    ("files.read_file", "Reads the complete contents of a file as text. Use it to examine a single file."),
    (
        "files.write_file",
        "Creates a new file or overwrites an existing one with new content. Missing folders are made.",
    ),
    (
        "files.edit_file",
        "Makes line-based edits to a text file. Each edit replaces exact lines by new content.",
    ),
    (
        "files.list_directory",
        "Lists what is in a directory, files and folders apart. Hidden entries are included.",
    ),
    (
        "files.create_directory",
        "Creates a directory, with its parents where they are missing. An existing one is left as it is.",
    ),
    ("files.move_file", "Moves or renames a file or directory. It fails where the destination exists."),
    ("files.delete_file", "Deletes a file for good. Directories are not touched."),
    (
        "files.search_files",
        "Searches a directory tree for files whose names match a pattern. Gives the full path of each match.",
    ),
    ("files.get_file_size", "Gives the size in bytes of a file. Links are followed."),
    ("github.create_issue", "Opens a new issue in a GitHub repository. Labels and assignees can be given."),
    (
        "github.list_issues",
        "Lists the issues of a GitHub repository. They can be filtered by state and label.",
    ),
    ("github.get_issue", "Gives one issue of a GitHub repository by its number. Comments are not included."),
    ("github.close_issue", "Closes an issue of a GitHub repository. The reason is kept with it."),
    (
        "github.add_issue_comment",
        "Adds a comment to an issue of a GitHub repository. Markdown is understood.",
    ),
    (
        "github.create_pull_request",
        "Opens a pull request in a GitHub repository. It needs a branch with commits.",
    ),
    (
        "github.list_pull_requests",
        "Lists the pull requests of a GitHub repository. They can be filtered by state and branch.",
    ),
    (
        "github.merge_pull_request",
        "Merges a pull request of a GitHub repository. The method can be squash or rebase.",
    ),
    (
        "github.list_commits",
        "Lists the commits of a branch in a GitHub repository. The latest ones come first.",
    ),
    (
        "github.create_branch",
        "Creates a branch in a GitHub repository. It starts from the default branch unless told otherwise.",
    ),
    (
        "github.search_code",
        "Searches source code in GitHub repositories. Qualifiers such as language are understood.",
    ),
    (
        "meteo.get_weather",
        "Gives the current temperature and wind of a city: temperature, sky and wind. It knows large cities only.",
    ),
    (
        "meteo.get_forecast",
        "Gives the forecast of a city for up to seven days. Each day has a high and a low.",
    ),
    (
        "meteo.get_air_quality",
        "Gives the air quality index of a city. The pollutants are listed with their concentration.",
    ),
    ("watch.get_time", "Gives the current time in a city. Daylight saving is taken into account."),
    ("watch.convert_time", "Converts a time from one time zone to another. Both zones are IANA names."),
    ("watch.set_timer", "Starts a timer for a number of minutes. A notification is sent when it ends."),
    ("mail.send_email", "Sends an email to one or more addresses. Attachments are given as paths."),
    ("mail.list_emails", "Lists the emails of a mailbox, the newest first. Only headers are given."),
    ("mail.delete_email", "Moves an email to the trash. It can be restored within thirty days."),
    ("sms.send_sms", "Sends a text message to a phone number. Long messages are split."),
    (
        "desk.query_status",
        "Looks up how far a ticket is in its approval. Gives the current step and the step that comes next.",
    ),
    (
        "desk.list_open",
        "Lists the cases whose approval is under way, each with the step it is at. Finished ones are left out.",
    ),
    (
        "desk.create_ticket",
        "Creates a ticket with a title and a text. The number of the new ticket is given back.",
    ),
    ("desk.cancel_ticket", "Cancels a ticket that is not yet approved. The applicant is told."),
    (
        "shop.search_products",
        "Searches the catalogue for products by words, price and brand. Results are sorted by relevance.",
    ),
    (
        "shop.get_product_price",
        "Gives the price of a product, discounts included. The currency is the shop's.",
    ),
    ("shop.place_order", "Orders the products in the cart. The payment method on file is charged."),
    ("shop.track_delivery", "Tells where a parcel is. The carrier's tracking number is needed."),
    (
        "shop.refund_order",
        "Refunds an order in full or in part. The money goes back to the payment method used.",
    ),
    ("travel.search_flights", "Finds flights between two airports on a date. Prices include taxes."),
    ("travel.search_hotels", "Finds hotels in a city with free rooms on given dates. Prices are per night."),
    ("travel.book_flight", "Books a flight that was found before. The passenger's passport is needed."),
    ("travel.book_hotel", "Books a room in a hotel. It can be cancelled until the day before."),
    ("text.translate_text", "Translates a text into another language. The source language is detected."),
    ("text.summarize_text", "Summarizes a long text in a few sentences. The language stays the same."),
    ("text.count_words", "Counts the words and characters of a text. Punctuation is left out."),
    ("db.run_query", "Runs a SQL query against the database and gives the rows. Only SELECT is allowed."),
    ("db.list_tables", "Lists the tables of the database. Views are marked as such."),
    ("db.describe_table", "Gives the columns of a table with their types. Indexes are listed as well."),
    ("calendar.create_event", "Adds an event to the calendar. Invitations are sent to the attendees."),
    (
        "calendar.list_events",
        "Lists the events of the calendar between two dates. Recurring ones are expanded.",
    ),
    ("calendar.delete_event", "Removes an event from the calendar. The attendees are told."),
    ("media.play_music", "Plays a song or an album on a speaker. The volume stays as it is."),
    ("media.pause_music", "Pauses what a speaker plays. It goes on from the same place later."),
    ("home.turn_on_light", "Switches a lamp on. Its brightness can be given in percent."),
    ("home.set_temperature", "Sets the target temperature of a room. The heating follows within minutes."),
    ("finance.get_stock_price", "Gives the latest price of a stock. It is delayed by fifteen minutes."),
    (
        "finance.convert_currency",
        "Converts an amount from one currency to another. The rate is that of the day.",
    ),
    ("images.generate_image", "Draws a picture from a description in words. The size can be chosen."),
    ("images.resize_image", "Changes the size of a picture. The proportions are kept."),
    (
        "logs.summary",
        "Counts the requests in the access log by class of status. A time span narrows it down.",
    ),
    (
        "logs.search",
        "Finds the requests in the access log whose line contains a text. Gives the first ones in full.",
    ),
    ("github.get_pull_request", "Gets one pull request of a GitHub repository."),
    ("github.get_pull_request_status", "Gets the status of the checks of a pull request."),
    ("github.get_pull_request_files", "Gets the files changed in a pull request."),
    ("github.update_issue", "Changes title, text or labels of an issue in a GitHub repository."),
    ("jira.create_issue", "Creates an issue in a Jira project. The kind of issue is needed."),
    ("jira.assign_issue", "Assigns an issue of a Jira project to a person."),
    ("crm.get_user", "Gets a user by the number."),
    ("crm.get_user_orders", "Gets the orders of a user."),
    ("crm.list_users", "Lists users, filtered by name."),
    ("crm.update_user", "Updates the address of a user."),
    ("crm.delete_user", "Deletes a user and all that belongs to the account."),
    (
        "files.read_multiple_files",
        "Reads several files at once. What cannot be read does not spoil the rest.",
    ),
    ("browser.click", "Clicks on an element of the page."),
    ("browser.hover", "Moves the mouse over an element of the page."),
    ("browser.fill", "Fills in a field of a form on the page."),
    ("browser.take_screenshot", "Takes a screenshot of the page."),
    ("browser.navigate", "Opens a URL in the browser."),
    ("slack.post_message", "Posts a message to a Slack channel."),
    ("slack.reply_to_thread", "Replies to a message thread in Slack."),
    ("slack.add_reaction", "Adds an emoji reaction to a message in Slack."),
    ("slack.list_channels", "Lists the channels of the Slack workspace."),
    ("slack.get_channel_history", "Gets the latest messages of a Slack channel."),
    ("docker.start_container", "Starts a container that was stopped."),
    ("docker.stop_container", "Stops a running container."),
    ("docker.list_containers", "Lists the containers of this machine."),
    ("docker.get_container_logs", "Gets the log of a container."),
    ("kg.create_entities", "Creates entities in the knowledge graph."),
    ("kg.create_relations", "Creates relations between entities in the knowledge graph."),
    ("kg.search_nodes", "Searches the knowledge graph for nodes that match a text."),
    ("oa.query_invoice", "查询发票的报销进度。返回当前状态。"),
    ("oa.submit_expense", "提交报销单。提交后由财务审核。"),
    ("oa.create_meeting", "创建会议并邀请参会人员。"),
    ("oa.cancel_meeting", "取消会议并通知参会人员。"),
    ("bank.query_balance", "查询银行账户余额。"),
    ("bank.query_transactions", "查询银行账户的交易流水。"),
    ("bank.transfer", "向另一个银行账户转账。"),
    ("ci.get_workflow_run", "Get workflow run"),
    ("ci.get_workflow_run_logs", "Get workflow run logs"),
    ("ci.list_workflows", "List workflows"),
    ("ci.list_workflow_runs", "List workflow runs"),
    ("ci.list_workflow_jobs", "List workflow jobs"),
    ("ci.run_workflow", "Run workflow"),
    ("ci.cancel_workflow_run", "Cancel workflow run"),
    ("ci.get_alert", "Get scanning alert"),
    ("ci.list_alerts", "List scanning alerts"),
    ("forum.get_discussion", "Get discussion"),
    ("forum.get_discussion_comments", "Get discussion comments"),
    ("forum.list_discussions", "List discussions"),
    ("forum.search_discussions", "Search discussions"),
    ("hr.query_leave_balance", "查询员工的剩余年假天数。按自然年计算，不含病假。"),
    ("hr.submit_leave_request", "提交请假申请。提交后由直属主管审批。"),
    ("hr.cancel_leave_request", "撤销尚未审批的请假申请。已审批的不能撤销。"),
    ("hr.query_salary", "查询员工某个月的工资明细。只能查询本人的。"),
    ("oa.query_ticket_progress", "查询工单当前走到哪个审批节点。返回已完成和未完成的节点。"),
    ("oa.list_announcements", "列出公司最近发布的公告。按时间倒序排列。"),
    ("oa.book_meeting_room", "预订一间会议室。时间冲突时返回可用的会议室。"),
    ("map.plan_route", "规划两个地点之间的驾车路线。返回距离和预计时间。"),
    ("map.search_nearby", "搜索某个地点附近的餐厅或加油站。按距离排序。"),
    ("express.track_parcel", "查询快递的物流轨迹。需要提供快递单号。"),
    ("train.query_tickets", "查询两个车站之间的火车票余票。返回车次、时间和票价。"),
];

/// Pairs that say the same, in other words or in the same ones.
const ALIKE: &[[(&str, &str); 2]] = &[
    [("a.look_up", "Look up information"), ("b.find_information", "Look up information")],
    [
        ("live.search", "Looks up information about a customer."),
        ("archive.search", "Look up customer information"),
    ],
    [
        ("one.search_file", "Searches for files in the workspace."),
        ("two.find_file", "Finds a file in the workspace."),
    ],
    [
        ("ide.search_file", "Search the workspace for matching text."),
        ("ide.search_file_content", "Search the workspace for matching text."),
    ],
    [
        ("ide.search_directory", "Search for matches in the workspace folder."),
        ("ide.search_folder", "Finds matches in a directory of the workspace."),
    ],
    [
        ("wx.get_weather", "Gives the current temperature and wind of a city."),
        ("amap.query_weather", "Returns temperature and wind of a city right now."),
    ],
    [
        ("crm.get_customer_info", "Fetch details of a customer."),
        ("erp.fetch_client_details", "Retrieves information about a client."),
    ],
    [("m.send_email", "Sends an email to a person."), ("n.send_mail", "Send a mail to somebody.")],
    [("m.send_email", ""), ("n.send_email", "")],
    [
        ("t.create_ticket", "Creates a new ticket in the tracker."),
        ("u.add_ticket", "Adds a ticket to the tracker."),
    ],
    [
        ("t.delete_user", "Deletes a user for good."),
        ("u.remove_user", "Removes a user. It cannot be undone."),
    ],
    [("web.search", "Search the web for pages."), ("bing.web_search", "Searches web pages on the internet.")],
    [
        ("x.translate_text", "Translates text into another language."),
        ("y.translate", "Translate a text to another language."),
    ],
    [("f.search_file_zh", "搜索文件"), ("g.find_file_zh", "查找文件")],
    [("f.lookup", "搜索文件。返回匹配的文件列表。"), ("g.query", "查找文件，返回符合的文件列表。")],
    [("oa.query_ticket", "查询工单的审批状态"), ("itsm.ticket_status", "查看工单审批进度")],
    [("hr.get_employee", "获取员工的联系方式和部门"), ("org.query_employee", "查询员工所在部门和联系方式")],
    [
        (
            "meteo.get_weather",
            "Gives the current temperature and wind of a city: temperature, sky and wind. It knows large cities only.",
        ),
        ("wx.get_weather", "Gives the current temperature and wind of a city."),
    ],
    [
        ("mail.send_email", "Sends an email to one or more addresses. Attachments are given as paths."),
        ("n.send_mail", "Send a mail to somebody."),
    ],
    [("bank.query_balance", "查询银行账户余额。"), ("pay.get_balance", "获取银行账户的余额")],
    [
        ("docs.search_documents", "Searches the company's documents by keywords."),
        ("kb.find_docs", "Find documents of the company by keyword."),
    ],
    [("n.get_news", "获取今天的新闻"), ("o.latest_news", "查询当前新闻")],
];

fn tool((id, description): &(&str, &str)) -> (OperationId, Operation) {
    declared(id, &json!({"description": description}))
}

#[test]
fn tools_that_differ_are_not_warned_about() {
    let tools: Vec<_> = DIFFERENT.iter().filter(|(id, _)| id.is_ascii()).map(tool).collect();
    assert!(tools.len() >= 60);
    let found: Vec<String> = overlaps(&tools).into_iter().map(|finding| finding.message).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn tools_that_say_the_same_are_found_alone_and_among_others() {
    assert!(ALIKE.len() >= 10);
    for pair in ALIKE {
        let [one, other] = [tool(&pair[0]), tool(&pair[1])];
        let found = overlaps(&[one.clone(), other.clone()]);
        let [finding] = found.as_slice() else { panic!("{pair:?}: {found:#?}") };
        let (one_id, other_id) = (one.0.to_string(), other.0.to_string());
        assert!(finding.message.contains(&one_id) && finding.message.contains(&other_id), "{finding:?}");
        assert!(finding.hint.contains("when_not_to_use") && finding.hint.contains(&other_id), "{finding:?}");
        assert_eq!(found, overlaps(&[other.clone(), one.clone()]), "the order means nothing");
        let elsewhere = |(id, _): &&(&str, &str)| id.is_ascii() && !id.starts_with("wx.");
        let mut crowd: Vec<_> = DIFFERENT.iter().filter(elsewhere).map(tool).collect();
        crowd.retain(|(id, _)| *id != one.0 && *id != other.0);
        crowd.extend([one, other]);
        assert!(overlaps(&crowd).contains(finding), "{pair:?} among many");
    }
}

#[test]
fn r10_a_pair_is_named_with_its_shared_words_until_a_boundary_is_stated() {
    let told = |a: &str, b: &str| {
        let declare = |id, limits: &str| {
            declared(
                id,
                &json!({"description": "Look up information. The answer is text.", "when_not_to_use": limits}),
            )
        };
        overlaps(&[declare("live.look_up", a), declare("archive.look_up", b)])
    };
    let found = told("", "");
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].message,
        "archive.look_up and live.look_up seem to be for the same: both say answer, text, look, information"
    );
    for limits in [
        "Older data is asked for: use archive.look_up.",
        "For old data use archive__look_up.",
        "live data: here, older than a month: archive",
        "一个月以前的数据请用archive。",
    ] {
        assert_eq!(told(limits, ""), [], "{limits}");
    }
    assert_eq!(told("", "Live data is asked for: use live.look_up."), []);
    assert_eq!(told("The archiver is meant. Do not look up people.", "").len(), 1, "nothing is named there");
}

#[test]
fn c167_near_synonyms_are_each_found_once_and_the_different_one_is_not() {
    let names = [
        "search_file",
        "search_file_content",
        "search_directory",
        "search_code",
        "search_text",
        "search_symbol",
        "search_project",
        "search_workspace",
        "search_all",
        "search_matches",
        "search_content",
    ];
    let mut tools: Vec<_> = names
        .iter()
        .map(|name| {
            declared(
                &format!("ide.{name}"),
                &json!({"description": "Searches the workspace for matches. Gives the matching places."}),
            )
        })
        .collect();
    tools.push(tool(&(
        "watch.get_time",
        "Gives the current time in a city. Daylight saving is taken into account.",
    )));
    tools.push(tool(&("f.one", "搜索文件")));
    tools.push(tool(&("g.two", "查找文件")));
    let found = overlaps(&tools);
    assert_eq!(found.len(), 11 * 10 / 2 + 1, "{found:#?}");
    let mut messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
    assert!(!messages.iter().any(|message| message.contains("watch")));
    assert!(messages.iter().any(|message| message.contains("f.one and g.two")));
    messages.sort_unstable();
    messages.dedup();
    assert_eq!(messages.len(), found.len());
    tools.reverse();
    assert_eq!(overlaps(&tools), found, "the same in every order");
}

#[test]
fn of_very_many_that_are_alike_not_every_pair_is_listed() {
    let tools: Vec<_> = (0..400)
        .map(|number| tool(&(&*format!("p{number}.pid"), "Tells its process. It is a number.")))
        .collect();
    let found = overlaps(&tools);
    assert_eq!(found.len(), crate::lint::OVERLAPS_MAX + 1);
    assert!(found.last().unwrap().message.contains("more pairs"));
}

#[test]
fn services_and_pairs_of_others_are_left_out() {
    let service =
        declared("b.look_up", &json!({"description": "Look up information", "audience": "plugins"}));
    let [one, other] =
        [tool(&("a.look_up", "Look up information")), tool(&("c.look_up", "Look up information"))];
    assert_eq!(overlaps(&[one.clone(), service]), []);
    let all = [one, other];
    let of = |plugin: &'static str| {
        super::super::overlaps(all.iter().map(|(id, operation)| (id, operation)), move |id| {
            id.plugin.as_str() == plugin
        })
        .len()
    };
    assert_eq!((of("a"), of("c"), of("d")), (1, 1, 0));
}
