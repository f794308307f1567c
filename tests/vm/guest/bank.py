#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A SQLite database that several clients write to: accounts among which money moves, and a row for each move.

bank.py make FILE MODE             MODE: a journal_mode, or wal-exclusive, in which there is no shared memory
bank.py work FILE MODE NAME N      N transactions, each waits for its turn
bank.py hang FILE MODE             a transaction that has reached the database file and never ends; prints "there" when it is so
bank.py check FILE MODE ROWS       the database is whole and has as many moves; waits for 5 seconds only
"""
import random
import sqlite3
import sys
import time

ACCOUNTS, SUM = 50, 5000


def connect(file, mode, timeout):
    db = sqlite3.connect(file, timeout=timeout, isolation_level=None)
    if mode == "wal-exclusive":
        db.execute("PRAGMA locking_mode=exclusive")
    mode = mode.split("-")[0]
    got = db.execute(f"PRAGMA journal_mode={mode}").fetchone()[0]
    assert got == mode, f"journal_mode {got}"
    return db


def make(db):
    db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, money INTEGER)")
    db.execute("CREATE TABLE move (id INTEGER PRIMARY KEY, who TEXT, n INTEGER, pad BLOB, UNIQUE (who, n))")
    db.executemany("INSERT INTO account VALUES (?, ?)", [(i, SUM // ACCOUNTS) for i in range(ACCOUNTS)])


# Extended result code of sqlite3: a journal that is to be deleted is not there.
NO_JOURNAL = 10 | 23 << 8


def commit(db, name, n):
    """Commits a transaction. A server that is killed between the removal of the journal and its answer is asked again when it is back, and
    knows no such name any more: SQLite takes that for an error, and the transaction stands. Returns the connection to go on with."""
    try:
        db.execute("COMMIT")
        return db
    except sqlite3.OperationalError as e:
        print("COMMIT:", e.sqlite_errorname)
        if e.sqlite_errorcode != NO_JOURNAL:
            raise
    db = connect(path, journal, 120)
    assert db.execute("SELECT count(*) FROM move WHERE who = ? AND n = ?", (name, n)).fetchone() == (1,), "a transaction is lost"
    return db


def work(db, name, count):
    dice = random.Random(name)
    for n in range(int(count)):
        db.execute("BEGIN IMMEDIATE")
        a, b = dice.sample(range(ACCOUNTS), 2)
        (money,) = db.execute("SELECT money FROM account WHERE id = ?", (a,)).fetchone()
        part = dice.randint(0, max(money, 0))
        db.execute("UPDATE account SET money = ? WHERE id = ?", (money - part, a))
        db.execute("UPDATE account SET money = money + ? WHERE id = ?", (part, b))
        db.execute("INSERT INTO move (who, n, pad) VALUES (?, ?, ?)", (name, n, dice.randbytes(3000)))
        db = commit(db, name, n)


def hang(db):
    db.execute("PRAGMA cache_size=5")
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE account SET money = 0")
    for n in range(200):
        db.execute("INSERT INTO move (who, n, pad) VALUES ('hang', ?, ?)", (n, bytes(3000)))
    print("there", flush=True)
    time.sleep(1000)


def check(db, rows):
    problems = db.execute("PRAGMA integrity_check").fetchall()
    assert problems == [("ok",)], problems
    total, least = db.execute("SELECT sum(money), min(money) FROM account").fetchone()
    assert (total, least >= 0) == (SUM, True), f"sum {total}, least {least}"
    for who, n, last in db.execute("SELECT who, count(*), max(n) FROM move GROUP BY who"):
        assert n == last + 1, f"{who} has {n} moves, the last is {last}"
    (n,) = db.execute("SELECT count(*) FROM move").fetchone()
    assert n == int(rows), f"{n} moves instead of {rows}"


verb, path, journal = sys.argv[1:4]
{"make": make, "work": work, "hang": hang, "check": check}[verb](connect(path, journal, 5 if verb == "check" else 120), *sys.argv[4:])
