"""Writes orders.csv: the made-up orders of a shop, the same every time."""
import csv, datetime, random

chance = random.Random(20241215)
at = datetime.date(2024, 1, 2)
# One customer buys for a chain of shops; U-1042 has five orders, of 3200 in all.
buyers = ["U-2000"] * 3200 + ["U-1042"] * 5 + [f"U-{number}" for number in range(1043, 1083) for _ in range(number % 4)]
amounts = {"U-1042": [120, 860, 1499, 72, 649]}
chance.shuffle(buyers)
with open("orders.csv", "w", encoding="ascii", newline="") as file:
    table = csv.writer(file, lineterminator="\n")
    table.writerow(["order_id", "user_id", "placed", "status", "amount", "phone"])
    for number, user in enumerate(buyers, 1):
        at += datetime.timedelta(days=chance.random() < 0.1)
        amount = amounts[user].pop() if user in amounts else chance.randint(9, 900)
        status = chance.choices(["delivered", "shipped", "paid", "returned"], [80, 10, 7, 3])[0]
        phone = f"+44 7700 900{int(user[2:]) % 1000:03}"  # numbers that are nobody's
        table.writerow([f"ON-{number:06}", user, at, status, amount, phone])
