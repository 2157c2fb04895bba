"""Writes access.log: a made-up but lifelike day of a web server, the same every time."""
import datetime, random

LINES = 2000
chance = random.Random(20241215)
at = datetime.datetime(2024, 12, 15, 0, 0, 7, tzinfo=datetime.timezone(datetime.timedelta(hours=8)))
pages = ["/", "/docs/", "/docs/guide.html", "/docs/protocol.html", "/static/site.css", "/static/site.js",
         "/favicon.ico", "/api/tickets", "/api/tickets/TK-20241215-001", "/api/tickets/TK-20241215-002",
         "/api/weather?city=Beijing", "/api/weather?city=%E5%8C%97%E4%BA%AC", "/login", "/admin/"]
weights = [20, 14, 12, 9, 15, 15, 8, 14, 10, 6, 9, 5, 7, 1]
clients = [f"{net}.{host}" for net in ("192.0.2", "198.51.100", "203.0.113") for host in range(3, 250, 9)]
with open("access.log", "w", encoding="ascii", newline="\n") as log:
    for _ in range(LINES):
        at += datetime.timedelta(seconds=chance.choice([0, 1, 2, 5, 11, 40, 90, 200]))
        path = chance.choices(pages, weights)[0]
        method, status, size = "GET", 200, chance.randint(300, 24000)
        if path == "/login" and chance.random() < 0.8:
            method, status, size = chance.choice([("POST", 302, 0), ("POST", 401, 211)])
        elif path == "/admin/":
            status, size = 403, 199
        elif path.startswith("/static/") and chance.random() < 0.4:
            status, size = 304, 0
        elif path.startswith("/api/") and 9 <= at.hour < 10 and chance.random() < 0.35:
            status, size = chance.choice([(502, 157), (503, 190), (500, 1204)])  # a bad hour
        elif chance.random() < 0.03:
            path, status, size = chance.choice(["/wp-login.php", "/.env", "/docs/old.html"]), 404, 196
        when = at.strftime("%d/%b/%Y:%H:%M:%S %z")
        user = "ada" if path == "/admin/" else "-"
        log.write(f'{chance.choice(clients)} - {user} [{when}] "{method} {path} HTTP/1.1" {status} {size or "-"}\n')
